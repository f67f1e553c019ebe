#include "support/temp_dir.h"

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"

namespace lockstep::testing {

namespace fs = std::filesystem;

TempDir::TempDir()
    : path_(base::make_unique_folder(fs::temp_directory_path(),
                                     "lockstep-test-")) {}

TempDir::~TempDir() {
  std::error_code error;
  fs::remove_all(path_, error);
}

std::string TempDir::write(const std::string& name,
                           std::string_view text) const {
  base::write_file_atomically(path_ / name, text);
  return (path_ / name).string();
}

std::string TempDir::write_script(const std::string& name,
                                  std::string_view text) const {
  std::string path = write(name, text);
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

}  // namespace lockstep::testing
