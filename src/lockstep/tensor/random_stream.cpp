#include <algorithm>
#include <iterator>
#include <string>

#include "lockstep/error.h"
#include "lockstep/random.h"
#include "lockstep/tensor/draw.h"

namespace lockstep {

RandomStream::RandomStream(uint64_t seed, uint64_t stream)
    : seed_(seed), stream_(stream) {}

uint32_t RandomStream::bits() {
  if (num_words_ % 4 == 0) {
    const auto block = tensor::philox_block(seed_, stream_, num_words_ / 4);
    std::copy(std::begin(block.words), std::end(block.words), block_.begin());
  }
  return block_[num_words_++ % 4];
}

uint64_t RandomStream::double_bits() {
  const uint64_t low = bits();
  return low | uint64_t{bits()} << 32;
}

double RandomStream::uniform() { return tensor::unit_double(double_bits()); }

float RandomStream::uniform_float() { return tensor::unit_float(bits()); }

double RandomStream::normal() {
  const uint64_t distance = double_bits();
  return tensor::normal_pair(distance, double_bits()).first;
}

int64_t RandomStream::integer(int64_t below) {
  if (below <= 0) {
    throw ConfigError("a random integer below " + std::to_string(below) +
                      " does not exist: the bound must be at least 1");
  }
  const auto bound = static_cast<uint64_t>(below);
  uint64_t drawn = double_bits();
  while (drawn > tensor::last_fair_bits(bound)) drawn = double_bits();
  return static_cast<int64_t>(drawn % bound);
}

bool RandomStream::chance(double p) { return uniform() < p; }

}  // namespace lockstep
