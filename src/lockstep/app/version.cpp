#include "lockstep/app/version.h"

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/launch/torch_search.h"
#include "lockstep_commit.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

std::string torch_lines(const launch::TorchBuild& build) {
  std::string text =
      "torch " + build.version + " (" + build.folder.string() + ")\n";
  if (!build.cuda.empty()) text += "CUDA " + build.cuda + "\n";
  const std::string nccl = launch::nccl_version(build);
  if (!nccl.empty()) text += "NCCL " + nccl + "\n";
  return text;
}

std::string describe_torch(const base::Environment& environment,
                           const fs::path& program_folder) {
  const auto found = launch::find_torch(environment, program_folder);
  const auto linked = launch::linked_torch(program_folder);
  if (!found) {
    return "torch not found" +
           (linked ? "; " + launch::pip_command(linked->build) : "") + "\n";
  }
  const std::string mismatch =
      linked ? launch::torch_mismatch(*found, linked->build) : "";
  return torch_lines(*found) +
         (mismatch.empty() ? "" : "note: " + mismatch + "\n");
}

}  // namespace

std::string version_text(const base::Environment& environment,
                         const fs::path& program_folder) {
  const std::string own =
      "lockstep " LOCKSTEP_VERSION " (" LOCKSTEP_COMMIT ")\n";
  try {
    return own + describe_torch(environment, program_folder);
  } catch (const Error& error) {
    return own + "torch not found: " + error.what() + "\n";
  }
}

std::string cmake_folder(const fs::path& program_folder) {
  const fs::path folder = program_folder.parent_path() /
                          LOCKSTEP_LIBRARY_FOLDER / "cmake" / "Lockstep";
  if (!base::path_exists(folder / "LockstepConfig.cmake")) {
    throw ConfigError("there is no CMake package in " + folder.string() +
                      "; ./lockstep.sh install PREFIX, the archive and the "
                      "wheel bring one");
  }
  return folder;
}

std::string torch_folder(const base::Environment& environment,
                         const fs::path& program_folder) {
  if (const auto found = launch::find_torch(environment, program_folder)) {
    return found->folder;
  }
  throw ConfigError(
      "no torch found: install torch 2.11, or name its folder in "
      "LOCKSTEP_TORCH");
}

}  // namespace lockstep::app
