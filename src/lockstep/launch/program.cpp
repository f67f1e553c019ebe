#include "lockstep/launch/program.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lockstep/base/search_path.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

// torchrun's --run-path: errors of the script reach the error file.
constexpr const char* kRunPath = R"(import runpy, sys
def run():
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
try:
    from torch.distributed.elastic.multiprocessing.errors import record
except ImportError:
    record = lambda function: function
record(run)()
)";

[[noreturn]] void fail(const std::string& program, const std::string& why,
                       int exit_code) {
  throw ProgramError("cannot start '" + program + "': " + why, exit_code);
}

bool is_file(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

void check_path(const std::string& program, const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    const int number = errno;
    fail(program,
         std::string(std::strerror(number)) + "; is the path right from here?",
         number == EACCES ? kNotExecutable : kNotFound);
  }
  if (S_ISDIR(info.st_mode)) {
    fail(program, "it is a folder", kNotExecutable);
  }
}

}  // namespace

ProgramError::ProgramError(const std::string& what, int exit_code)
    : ConfigError(what), exit_code_(exit_code) {}

std::string find_executable(const std::string& program,
                            const base::Environment& environment) {
  if (program.find('/') != std::string::npos) {
    check_path(program, program);
    if (!base::is_executable(program)) {
      fail(program, "it is not executable; make it so with chmod +x",
           kNotExecutable);
    }
    return program;
  }
  if (const auto path = base::find_on_path(program, environment)) return *path;
  fail(program,
       is_file(program)
           ? "not found on PATH, but this folder has one: use ./" + program
           : "No such file or directory, and nothing of that name on PATH",
       kNotFound);
}

ProgramCommand find_command(const RunOptions& options,
                            const base::Environment& environment) {
  ProgramCommand command{.file = "",
                         .arguments = {},
                         .title = options.program,
                         .is_python = false};
  const bool is_script = options.run_path || (!options.no_python &&
                                              options.program.ends_with(".py"));
  if (options.module || is_script) {
    if (!options.module) check_path(options.program, options.program);
    command.is_python = true;
    const auto python =
        base::find(environment, "PYTHON_EXEC").value_or("python3");
    command.file = find_executable(python, environment);
    command.arguments = {python, "-u"};
    if (options.module) command.arguments.push_back("-m");
    if (options.run_path) {
      command.arguments.insert(command.arguments.end(), {"-c", kRunPath});
    }
  } else {
    command.file = find_executable(options.program, environment);
    command.is_python = std::filesystem::path(options.program)
                            .filename()
                            .string()
                            .starts_with("python");
  }
  command.arguments.push_back(options.program);
  command.arguments.insert(command.arguments.end(), options.arguments.begin(),
                           options.arguments.end());
  return command;
}

std::vector<std::string> arguments_for(const ProgramCommand& command,
                                       int local_rank) {
  std::vector<std::string> result;
  for (const std::string& argument : command.arguments) {
    result.push_back(base::replace_all(argument, "${local_rank}",
                                       std::to_string(local_rank)));
  }
  return result;
}

ProgramError exec_error(const ProgramCommand& command, int error_number) {
  std::string why = std::strerror(error_number);
  if (error_number == ENOENT) {
    why += "; the file exists, the interpreter in its first line may not";
  }
  if (error_number == ENOEXEC) why += "; built for another kind of machine?";
  return {"cannot start '" + command.title + "': " + why,
          error_number == ENOENT ? kNotFound : kNotExecutable};
}

}  // namespace lockstep::launch
