#include "lockstep/random.h"

namespace lockstep {

uint64_t mix_bits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

uint64_t sample_seed(uint64_t seed, int64_t epoch, int64_t index) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  uint64_t state = mix_bits(seed + kGolden);
  state = mix_bits(state ^ (static_cast<uint64_t>(epoch) + kGolden));
  return mix_bits(state ^ (static_cast<uint64_t>(index) + kGolden));
}

}  // namespace lockstep
