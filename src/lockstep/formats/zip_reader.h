// Reads a zip archive and checks all of its records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/formats/byte_source.h"
#include "lockstep/formats/byte_storage.h"

namespace lockstep::formats {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t size = 0;         // uncompressed
  uint64_t offset = 0;       // of its local header
  uint64_t data_offset = 0;  // of its bytes, as they lie in the archive
  uint64_t stored_size = 0;  // of these bytes
};

// Entries are uncompressed or deflated; encryption, comments at the end and
// several disks are refused. Nothing may follow the archive. Local headers must
// agree with the directory, and no two entries share bytes: a small file could
// then ask for much memory. For the same reason all compressed entries together
// may have 64 MiB and 16 times the bytes of the archive. Every function throws
// FormatError, and IoError when the file cannot be read.
class ZipReader {
 public:
  explicit ZipReader(ByteSource source);

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // Null when there is none.
  const ZipEntry* find(std::string_view name) const;

  // The content in memory, with its CRC checked.
  std::shared_ptr<const ByteStorage> read(const ZipEntry& entry) const;

  // The same, but an uncompressed entry's bytes are not read yet.
  std::shared_ptr<const ByteStorage> storage(const ZipEntry& entry) const;

 private:
  ByteSource source_;
  std::vector<ZipEntry> entries_;  // sorted by name
};

}  // namespace lockstep::formats
