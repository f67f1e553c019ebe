// Random draws on the host, one after the other: crops, flips, masks of a
// sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "lockstep/tensor/philox.h"

namespace lockstep {

// The words of one Philox stream in order. Equal seed and stream give equal
// draws on every machine and in every version; every draw takes fresh words.
// Cheap to make; not thread-safe.
class RandomStream {
 public:
  // Streams of one seed are independent of each other. Those from 2^32 on
  // belong to SampleRandom.
  explicit RandomStream(uint64_t seed, uint64_t stream = 0);

  uint32_t bits();
  double uniform();       // [0, 1), 53 bits, of two words
  float uniform_float();  // [0, 1), 24 bits, of one word
  double normal();        // mean 0, deviation 1, of four words
  // 0 ... below - 1, each equally likely. Throws ConfigError unless below > 0.
  int64_t integer(int64_t below);
  // True with probability p: never for 0, always for 1.
  bool chance(double p);

  // Every order is equally likely (Fisher-Yates, from the back).
  template <typename Container>
  void shuffle(Container& values) {
    for (auto left = static_cast<int64_t>(values.size()); left > 1; --left) {
      const int64_t chosen = integer(left);
      using std::swap;
      swap(values[static_cast<std::size_t>(left - 1)],
           values[static_cast<std::size_t>(chosen)]);
    }
  }

 private:
  uint64_t double_bits();  // two words, the low one first

  uint64_t seed_;
  uint64_t stream_;
  uint64_t num_words_ = 0;  // taken so far
  PhiloxBlock block_{};     // holds the next word, unless a new block begins
};

}  // namespace lockstep
