// A folder for one test.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::testing {

// Made empty, removed with all its contents on destruction.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes a file into the folder and returns its path.
  std::string write(const std::string& name, std::string_view text) const;
  // Also makes it executable.
  std::string write_script(const std::string& name,
                           std::string_view text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::testing
