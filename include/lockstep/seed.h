// Seeds as pure functions: what is random about a sample depends on nothing but
// its place.
#pragma once

#include <cstdint>

namespace lockstep {

// Spreads every bit of `value` over all bits of the result (the finaliser of
// splitmix64).
uint64_t mix_bits(uint64_t value);

// The seed of one sample: equal for every number of processes and threads.
uint64_t sample_seed(uint64_t seed, int64_t epoch, int64_t index);

}  // namespace lockstep
