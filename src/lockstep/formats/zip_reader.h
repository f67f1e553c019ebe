// Reads a mapped zip archive and checks all it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/formats/mapped_file.h"
#include "lockstep/formats/tensor_record.h"

namespace lockstep {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t size = 0;               // uncompressed
  uint64_t offset = 0;             // of its local header
  std::span<const std::byte> raw;  // as it lies in the file
};

// Entries are uncompressed or deflated; encryption, comments at the end and
// several disks are refused. Nothing may follow the archive. Local headers must
// agree with the directory, and no two entries share bytes: a small file could
// then ask for much memory. Every function throws FormatError.
class ZipReader {
 public:
  explicit ZipReader(MappedFile file);

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // Null when there is none.
  const ZipEntry* find(std::string_view name) const;

  // The content, with its CRC checked: a view of the file when it is not
  // compressed.
  std::shared_ptr<const ByteStorage> read(const ZipEntry& entry) const;

  // The same without reading an uncompressed entry's bytes.
  std::shared_ptr<const ByteStorage> read_unchecked(
      const ZipEntry& entry) const;

 private:
  MappedFile file_;
  std::vector<ZipEntry> entries_;  // sorted by name
};

}  // namespace lockstep
