// The checksum of zip files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::formats {

// `before`: the checksum of the bytes in front of these.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before = 0);

// The checksum of two parts in a row, the second one of this size.
uint32_t joined_crc32(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace lockstep::formats
