#include "lockstep/launch/worker_program.h"

#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lockstep/base/exec_arrays.h"
#include "lockstep/error.h"
#include "lockstep/launch/program.h"

namespace lockstep::launch {
namespace {

constexpr const char* kWorkerName = "lockstep-worker";
constexpr const char* kWorkerVariable = "LOCKSTEP_WORKER";

// `other_remedy`: appended to that of a program that is missing.
std::string find_beside(const std::string& name,
                        const base::Environment& environment,
                        const std::filesystem::path& launcher_folder,
                        const std::string& other_remedy) {
  const std::filesystem::path beside = launcher_folder / name;
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) {
    return find_executable(beside, environment);
  }
  try {
    return find_executable(name, environment);
  } catch (const ProgramError& error) {
    throw ProgramError(
        name + " is missing: it is neither in " + launcher_folder.string() +
            " nor on PATH; build it with ./lockstep.sh build" + other_remedy,
        error.program_exit_code());
  }
}

}  // namespace

std::string find_worker(const base::Environment& environment,
                        const std::filesystem::path& launcher_folder) {
  if (const auto named = base::find(environment, kWorkerVariable)) {
    try {
      return find_executable(*named, environment);
    } catch (const ProgramError& error) {
      throw ProgramError(
          std::string(error.what()) + " (from " + kWorkerVariable + ")",
          error.program_exit_code());
    }
  }
  return find_beside(kWorkerName, environment, launcher_folder,
                     std::string(", install Lockstep's wheel or name it in ") +
                         kWorkerVariable);
}

std::string find_companion(const std::string& name,
                           const base::Environment& environment,
                           const std::filesystem::path& launcher_folder) {
  return find_beside(name, environment, launcher_folder, "");
}

std::filesystem::path own_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw IoError("cannot read /proc/self/exe: " + error.message());
  return self.parent_path();
}

void become_program(const std::string& program,
                    std::span<const std::string> arguments,
                    const base::Environment& environment) {
  ProgramCommand command{
      .file = program, .arguments = {program}, .title = program};
  command.arguments.insert(command.arguments.end(), arguments.begin(),
                           arguments.end());
  const std::vector<std::string> entries = base::entries_of(environment);
  execve(program.c_str(), base::pointers_to(command.arguments).data(),
         base::pointers_to(entries).data());
  throw exec_error(command, errno);
}

}  // namespace lockstep::launch
