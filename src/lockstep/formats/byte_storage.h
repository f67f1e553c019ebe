// The bytes that tensors of a file share, as tied weights do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/formats/byte_source.h"

namespace lockstep::formats {

// What a file records about bytes: their CRC, and their name for errors.
struct Checksum {
  uint32_t crc32 = 0;
  std::string name = {};
};

// Bytes in memory, or a part of a file that is read when it is asked for. Safe
// to use from several threads.
class ByteStorage {
 public:
  // Empty until place_in() is called.
  ByteStorage() = default;
  ByteStorage(ByteSource source, uint64_t offset, uint64_t size,
              std::optional<Checksum> checksum = {});

  static std::shared_ptr<const ByteStorage> own(std::vector<std::byte> bytes);
  static std::shared_ptr<const ByteStorage> view(
      std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  // For formats that record where bytes lie after what they are; before others
  // use the storage. Throws FormatError when the source has no such part.
  void place_in(ByteSource source, uint64_t offset, uint64_t size);

  size_t size() const { return size_; }
  bool is_in_memory() const;
  const std::optional<Checksum>& checksum() const { return checksum_; }

  // Bytes of a file are read at the first call, checked, and kept as long as
  // this storage. Throws as read(), and FormatError when the CRC differs.
  std::span<const std::byte> bytes() const;

  // Copies the bytes from `offset` on; nothing is kept or checked. Throws
  // IoError, which names the file.
  void read(size_t offset, std::span<std::byte> to) const;

  // Where there is a CRC, reads all bytes, a few at a time, and compares it.
  // Throws as bytes().
  void check() const;

  // Throws FormatError unless this is the CRC of the bytes.
  void compare(uint32_t crc32) const;

 private:
  ByteSource source_;
  uint64_t offset_ = 0;
  size_t size_ = 0;
  std::optional<Checksum> checksum_;
  mutable std::mutex mutex_;
  mutable std::optional<std::vector<std::byte>> kept_;
};

}  // namespace lockstep::formats
