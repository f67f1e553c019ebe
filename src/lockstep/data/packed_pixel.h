// Three channels in one number, so that one multiplication weights all of them.
// Private to data/.
#pragma once

#include <cstdint>

namespace lockstep::data {

// A sum of one channel may have this many bits.
constexpr int kPackedBits = 21;

constexpr uint64_t packed(uint64_t red, uint64_t green, uint64_t blue) {
  return red | green << kPackedBits | blue << 2 * kPackedBits;
}

inline uint64_t packed(const uint8_t* pixel) {
  return packed(pixel[0], pixel[1], pixel[2]);
}

constexpr uint32_t packed_part(uint64_t sums, int channel) {
  return uint32_t(sums >> channel * kPackedBits) & ((1U << kPackedBits) - 1);
}

}  // namespace lockstep::data
