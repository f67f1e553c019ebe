#include "lockstep/base/search_path.h"

#include <unistd.h>

#include <filesystem>

#include "lockstep/base/strings.h"

namespace lockstep::base {

bool is_executable(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> find_on_path(const std::string& program,
                                        const Environment& environment) {
  const auto folders = find(environment, "PATH").value_or("/usr/bin:/bin");
  for (const std::string& folder : split(folders, ':')) {
    std::string path = (folder.empty() ? "." : folder) + "/" + program;
    if (is_executable(path)) return path;
  }
  return std::nullopt;
}

}  // namespace lockstep::base
