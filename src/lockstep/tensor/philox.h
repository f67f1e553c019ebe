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

// For functions that host code and CUDA kernels share.
#if defined(__CUDACC__)
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

namespace lockstep {

struct PhiloxBlock {
  uint32_t words[4];
};

struct PhiloxKey {
  uint32_t words[2];
};

LOCKSTEP_HOST_DEVICE constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter,
                                                         PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t even = uint64_t{0xD2511F53u} * counter.words[0];
    const uint64_t odd = uint64_t{0xCD9E8D57u} * counter.words[2];
    counter = {
        {static_cast<uint32_t>(odd >> 32) ^ counter.words[1] ^ key.words[0],
         static_cast<uint32_t>(odd),
         static_cast<uint32_t>(even >> 32) ^ counter.words[3] ^ key.words[1],
         static_cast<uint32_t>(even)}};
    key = {{key.words[0] + 0x9E3779B9u, key.words[1] + 0xBB67AE85u}};
  }
  return counter;
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

}  // namespace lockstep
