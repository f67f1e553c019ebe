// Files below one folder, whatever paths are asked for: a path never leads out
// of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::runs {

struct FileFacts {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified = 0;  // Unix time in seconds.
};

struct FolderEntry {
  std::string name = {};
  bool is_folder = false;  // Else a regular file.
  FileFacts facts = {};
};

struct OpenFile {
  base::FileDescriptor file = {};
  FileFacts facts = {};
};

// Read-only. Symbolic links below the folder are not followed, pipes and
// devices are not opened, and `..` is refused: all of these look like files
// that do not exist. Safe to use from several threads.
class FolderTree {
 public:
  // Throws ConfigError when it is not a folder that can be read.
  explicit FolderTree(const std::filesystem::path& root);

  // As it was named.
  const std::filesystem::path& root() const { return root_; }

  // Paths are relative, with '/'; "." is the folder itself.
  std::optional<OpenFile> open_file(std::string_view path) const;
  std::optional<FileFacts> facts_of(std::string_view path) const;
  // No value when it holds more than `most_bytes`.
  std::optional<std::string> read(std::string_view path,
                                  size_t most_bytes) const;
  // The last bytes of a file of any size.
  std::optional<std::string> read_end(std::string_view path,
                                      size_t most_bytes) const;
  // Folders and regular files, by name; hidden ones are left out. Stops behind
  // `most`.
  std::vector<FolderEntry> list(std::string_view path, size_t most) const;

 private:
  base::FileDescriptor open_at(std::string_view path, int flags) const;

  std::filesystem::path root_;
  base::FileDescriptor folder_;
};

// "a" and "b/c": "a/b/c"; "." and "b": "b".
std::string joined_path(std::string_view folder, std::string_view name);

}  // namespace lockstep::runs
