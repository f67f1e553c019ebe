// What readers of files read from: an open file, or bytes in memory.
//
// Files are read and not mapped: a file that is truncated while it is read
// would end the process by SIGBUS at any later access to a mapping. Here it is
// an error that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::formats {

// Copies share the file, which is closed when the last one goes. Replacing the
// file by a rename changes nothing for them. Safe to use from several threads.
class ByteSource {
 public:
  ByteSource() = default;  // No bytes.

  // Bytes that `owner` keeps alive; without owner they must live long enough.
  explicit ByteSource(std::span<const std::byte> bytes,
                      std::shared_ptr<const void> owner = {});

  uint64_t size() const { return size_; }

  // Fills `to` with the bytes from `offset` on. Throws FormatError when they
  // reach beyond size(), and IoError with the path when the file cannot be read
  // or has become shorter since it was opened.
  void read(uint64_t offset, std::span<std::byte> to) const;

  // The same as a copy; memory is taken only for bytes that can be there.
  std::vector<std::byte> take(uint64_t offset, uint64_t count) const;

  // The bytes where they lie in memory; no data() for those of a file. Throws
  // as read().
  std::span<const std::byte> in_memory(uint64_t offset, uint64_t count) const;

 private:
  struct File;
  friend ByteSource open_source(const std::filesystem::path& path);

  void check_range(uint64_t offset, uint64_t count) const;

  std::shared_ptr<const File> file_;  // Null: the bytes are in memory.
  std::shared_ptr<const void> owner_;
  const std::byte* memory_ = nullptr;
  uint64_t size_ = 0;
};

// Throws IoError when the file cannot be opened or is not a regular file.
ByteSource open_source(const std::filesystem::path& path);

}  // namespace lockstep::formats
