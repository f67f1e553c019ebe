// The one random generator of the project: Philox4x32-10 (Salmon, Moraes, Dror,
// Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; 2011).
//
// It has no state: a block of four words is a function of a counter and a key,
// so that any value can be computed anywhere, in any order. Here the key is the
// 64-bit seed of a sample (seed.h), the counter is a block's number in a
// stream. Streams below 2^32 are RandomStream's, those from 2^32 on
// SampleRandom's: what augments a sample and what makes its noise never share
// words.
#pragma once

#include <cstdint>

// For small functions that host code and CUDA kernels share. Inlined always:
// only then does the CPU compute several blocks at a time.
#if defined(__CUDACC__)
#define LOCKSTEP_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HOST_DEVICE [[gnu::always_inline]] inline
#endif

namespace lockstep::tensor {

struct PhiloxBlock {
  uint32_t words[4];
};

struct PhiloxKey {
  uint32_t words[2];
};

LOCKSTEP_HOST_DEVICE constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter,
                                                         PhiloxKey key) {
  // Single variables: compilers keep them in registers and vectorise.
  uint32_t a = counter.words[0];
  uint32_t b = counter.words[1];
  uint32_t c = counter.words[2];
  uint32_t d = counter.words[3];
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t even = uint64_t{0xD2511F53u} * a;
    const uint64_t odd = uint64_t{0xCD9E8D57u} * c;
    a = static_cast<uint32_t>(odd >> 32) ^ b ^
        (key.words[0] + round * 0x9E3779B9u);
    b = static_cast<uint32_t>(odd);
    c = static_cast<uint32_t>(even >> 32) ^ d ^
        (key.words[1] + round * 0xBB67AE85u);
    d = static_cast<uint32_t>(even);
  }
  return {{a, b, c, d}};
}

// Block number `block` of a stream. Low words come first.
LOCKSTEP_HOST_DEVICE constexpr PhiloxBlock philox_block(uint64_t seed,
                                                        uint64_t stream,
                                                        uint64_t block) {
  return philox4x32_10(
      {{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
        static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)}},
      {{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}});
}

}  // namespace lockstep::tensor
