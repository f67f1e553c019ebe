#include "lockstep/formats/crc32.h"

#include <isa-l/crc.h>
#include <zlib.h>

namespace lockstep::formats {

uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before) {
  return crc32_gzip_refl(before,
                         reinterpret_cast<const unsigned char*>(bytes.data()),
                         bytes.size());
}

uint32_t joined_crc32(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return static_cast<uint32_t>(
      crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

}  // namespace lockstep::formats
