// The checksum of zip files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace lockstep
