#include "lockstep/launch/torch_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

// The text between the first two apostrophes of the line that begins with
// `name`; empty when there is none, as in "cuda: Optional[str] = None".
std::string quoted_value(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const std::vector<std::string> parts = base::split(line, '\'');
    return parts.size() > 2 ? parts[1] : "";
  }
  return {};
}

// "13.0" of "2.11.0+cu130".
std::string cuda_of_version(const std::string& version) {
  const size_t suffix = version.find("+cu");
  if (suffix == std::string::npos) return {};
  const std::string digits = version.substr(suffix + 3);
  if (digits.size() < 2) return {};
  return digits.substr(0, digits.size() - 1) + "." + digits.back();
}

// A wheel has version.py, an unpacked libtorch build-version.
std::optional<TorchBuild> read_build(const fs::path& folder) {
  if (!base::path_exists(folder / "lib" / "libtorch_cpu.so")) return {};
  if (const auto text = base::try_read_file(folder / "version.py")) {
    return TorchBuild{.version = quoted_value(*text, "__version__"),
                      .cuda = quoted_value(*text, "cuda"),
                      .folder = folder};
  }
  if (const auto text = base::try_read_file(folder / "build-version")) {
    const std::string version(base::trim(*text));
    return TorchBuild{
        .version = version, .cuda = cuda_of_version(version), .folder = folder};
  }
  return {};
}

std::vector<fs::path> candidate_folders(const fs::path& place) {
  std::vector<fs::path> folders = {place, place / "torch"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    folders.push_back(entry.path() / "site-packages" / "torch");
    folders.push_back(entry.path() / "dist-packages" / "torch");
  }
  std::sort(folders.begin() + 2, folders.end());
  return folders;
}

// "2.11" of "2.11.0+cu130".
std::string minor_version(const std::string& version) {
  const std::vector<std::string> parts = base::split(version, '.');
  return parts.size() < 2 ? version : parts[0] + "." + parts[1];
}

std::string kind_of(const TorchBuild& build) {
  return build.cuda.empty() ? "a CPU build" : "built for CUDA " + build.cuda;
}

}  // namespace

std::optional<TorchBuild> torch_in(const fs::path& place) {
  for (const fs::path& folder : candidate_folders(place)) {
    if (const auto build = read_build(folder)) return build;
  }
  return {};
}

std::string nccl_version(const TorchBuild& build) {
  const fs::path header =
      build.folder.parent_path() / "nvidia" / "nccl" / "include" / "nccl.h";
  std::istringstream lines(base::try_read_file(header).value_or(""));
  std::vector<std::string> numbers;
  for (std::string line; std::getline(lines, line) && numbers.size() < 3;) {
    for (const char* part : {"MAJOR ", "MINOR ", "PATCH "}) {
      const std::string start = std::string("#define NCCL_") + part;
      if (!line.starts_with(start)) continue;
      numbers.emplace_back(base::trim(line.substr(start.size())));
    }
  }
  return base::join(numbers, ".");
}

std::string torch_mismatch(const TorchBuild& found, const TorchBuild& needed) {
  const std::string wanted = minor_version(needed.version);
  const std::string folder = found.folder.string();
  if (minor_version(found.version) != wanted) {
    return fmt::format(
        "the torch in {} is {}, and this Lockstep was built for {}; install "
        "that one: {}",
        folder, found.version, wanted, pip_command(needed));
  }
  if (found.cuda == needed.cuda) return {};
  return fmt::format(
      "the torch in {} ({}) is {}, and this Lockstep needs {}; install that "
      "one: {}, or build Lockstep from source for yours",
      folder, found.version, kind_of(found),
      needed.cuda.empty() ? kind_of(needed) : "one for CUDA " + needed.cuda,
      pip_command(needed));
}

// pip takes 2.11.0+cpu for 2.11.0 and keeps it unless it is forced.
std::string pip_command(const TorchBuild& needed) {
  return "pip install --force-reinstall torch==" +
         base::split(needed.version, '+')[0];
}

}  // namespace lockstep::launch
