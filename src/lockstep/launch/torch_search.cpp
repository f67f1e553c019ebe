#include "lockstep/launch/torch_search.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/python_torch.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTorchVariable = "LOCKSTEP_TORCH";
constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";

std::optional<TorchBuild> named_torch(const base::Environment& environment) {
  const auto place = base::find(environment, kTorchVariable);
  if (!place) return {};
  // The worker's working folder may be another one.
  if (const auto build = torch_in(fs::absolute(*place))) return build;
  throw ConfigError(std::string(kTorchVariable) + "=" + *place +
                    " holds no torch; name a folder 'torch' of a wheel, a "
                    "virtual environment or an unpacked libtorch");
}

std::vector<std::string> pythons(const base::Environment& environment,
                                 const fs::path& program_folder,
                                 bool in_python_environment) {
  std::vector<std::string> files;
  if (in_python_environment) files.push_back(program_folder / "python3");
  if (const auto folder = base::find(environment, "VIRTUAL_ENV")) {
    files.push_back(fs::path(*folder) / "bin" / "python3");
  }
  files.push_back("python3");
  return files;
}

std::vector<std::string> library_folders(const TorchBuild& build) {
  std::vector<std::string> folders;
  std::error_code ignored;
  const fs::path wheels = build.folder.parent_path() / "nvidia";
  for (const auto& entry : fs::directory_iterator(wheels, ignored)) {
    const fs::path libraries = entry.path() / "lib";
    if (base::is_folder(libraries)) folders.push_back(libraries);
  }
  std::sort(folders.begin(), folders.end());
  folders.insert(folders.begin(), build.folder / "lib");
  return folders;
}

[[noreturn]] void refuse_missing_torch(const TorchBuild& needed) {
  throw ConfigError(
      "no torch found: neither an active virtual environment nor "
      "python3 has one; install it: " +
      pip_command(needed) + ", or name its folder in " + kTorchVariable);
}

}  // namespace

std::optional<LinkedTorch> linked_torch(const fs::path& program_folder) {
  const fs::path file = program_folder.parent_path() / LOCKSTEP_LIBRARY_FOLDER /
                        "lockstep" / "torch.json";
  const auto text = base::try_read_file(file);
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  try {
    return LinkedTorch{
        .build = {.version = json.at("version").get<std::string>(),
                  .cuda = json.at("cuda").get<std::string>(),
                  .folder = json.value("folder", std::string())},
        .in_python_environment = json.value("in_python_environment", false)};
  } catch (const nlohmann::json::exception&) {
    throw FormatError("'" + file.string() +
                      "' is damaged; install Lockstep again");
  }
}

std::optional<TorchBuild> find_torch(const base::Environment& environment,
                                     const fs::path& program_folder) {
  if (const auto named = named_torch(environment)) return named;
  const LinkedTorch linked =
      linked_torch(program_folder).value_or(LinkedTorch{});
  if (!linked.build.folder.empty()) {
    if (const auto build = torch_in(linked.build.folder)) return build;
  }
  for (const std::string& python :
       pythons(environment, program_folder, linked.in_python_environment)) {
    const std::string folder = torch_folder_of_python(python, environment);
    if (folder.empty()) continue;
    if (const auto build = torch_in(folder)) return build;
  }
  return {};
}

base::Environment with_torch(base::Environment environment,
                             const fs::path& worker) {
  // As the loader sees it, which follows links before it reads a run path.
  const fs::path folder = fs::weakly_canonical(worker).parent_path();
  const auto linked = linked_torch(folder);
  if (!linked) return environment;
  const auto found = find_torch(environment, folder);
  if (!found) refuse_missing_torch(linked->build);
  if (found->folder == linked->build.folder) return environment;
  const std::string mismatch = torch_mismatch(*found, linked->build);
  if (!mismatch.empty()) throw ConfigError(mismatch);
  std::string path = base::join(library_folders(*found), ":");
  if (const auto before = base::find(environment, kLibraryPath)) {
    path += ":" + *before;
  }
  environment[kLibraryPath] = path;
  return environment;
}

}  // namespace lockstep::launch
