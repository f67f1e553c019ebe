// Reads bytes of storages into memory, by several threads.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/formats/byte_storage.h"

namespace lockstep::checkpoint {

struct StorageRead {
  const formats::ByteStorage* from = nullptr;
  size_t offset = 0;
  std::span<std::byte> to = {};  // Not yet written to.
};

// By at most as many threads as libtorch computes with, this one among them.
// Returns when all is read, and the checksums of storages that were read whole
// are compared. Throws IoError, and FormatError for a checksum that differs.
void read_all(std::span<const StorageRead> reads);

}  // namespace lockstep::checkpoint
