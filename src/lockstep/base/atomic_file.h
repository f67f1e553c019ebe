// A new file that appears at its path whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::base {

// Writes to "<path>.partial.XXXXXX" in the same folder; commit() makes it
// durable and renames it. Destroyed without commit(): the temporary file is
// removed and the old file stays. The file gets the rights that the umask
// allows. All functions throw IoError with path and reason.
//
// The temporary file is locked (flock) while it is written, so that others can
// tell it from the leftover of a killed process.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);

  // Bytes written until now.
  uint64_t size() const { return size_; }

  // fsync, rename, fsync of the folder.
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  std::string temporary_;  // empty after commit()
  FileDescriptor file_;
  uint64_t size_ = 0;
};

// A whole file at once.
void write_file_atomically(const std::filesystem::path& path,
                           std::string_view bytes);

// Removes temporary files that no process is writing to; returns their paths.
// A folder that does not exist has none.
std::vector<std::filesystem::path> remove_leftovers(
    const std::filesystem::path& folder);

}  // namespace lockstep::base
