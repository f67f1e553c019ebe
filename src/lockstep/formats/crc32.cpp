#include "lockstep/formats/crc32.h"

#include <isa-l/crc.h>

namespace lockstep {

uint32_t crc32_of(std::span<const std::byte> bytes) {
  return crc32_gzip_refl(
      0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace lockstep
