// Writes a zip archive of uncompressed entries, as torch.save lays them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/atomic_file.h"

namespace lockstep::formats {

// Every entry's data begins at a multiple of 64 bytes, so that it can be
// mapped. zip64 fields appear only where an entry or the archive exceeds 4 GiB.
class ZipWriter {
 public:
  // `file` must be empty and outlive the writer.
  explicit ZipWriter(base::AtomicFile& file) : file_(file) {}

  void add(std::string_view name, std::span<const std::byte> data);

  // Writes the directory. The file still has to be committed.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint32_t crc = 0;
    uint64_t size = 0;
    uint64_t offset = 0;
  };

  base::AtomicFile& file_;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::formats
