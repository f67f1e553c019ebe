// Random draws as pure functions of a sample's position: equal for every number
// of processes and threads, on every device.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lockstep/export.h"

namespace lockstep {

// Spreads every bit of `value` over all bits of the result (the finaliser of
// splitmix64).
LOCKSTEP_EXPORT uint64_t mix_bits(uint64_t value);

// The seed of one sample: equal for every number of processes and threads.
LOCKSTEP_EXPORT uint64_t sample_seed(uint64_t seed, int64_t epoch,
                                     int64_t index);

// Random draws on the host, one after the other: crops, flips, masks of a
// sample.
//
// The words of one Philox stream in order. Equal seed and stream give equal
// draws on every machine and in every version; every draw takes fresh words.
// Cheap to make; not thread-safe.
class LOCKSTEP_EXPORT RandomStream {
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
  std::array<uint32_t, 4>
      block_{};  // holds the next word, unless a new block begins
};

// Tensors of random draws for the samples of one batch: noise, time steps,
// dropped labels, masks.
//
// Row b of a result depends on seeds[b] and on which call it is (the first, the
// second, ...), never on the batch's size or order, the device, threads or the
// number of processes. All bits are equal on CPU and CUDA. On CUDA a call
// queues one kernel on the current stream and does not wait. Not thread-safe.
class LOCKSTEP_EXPORT SampleRandom {
 public:
  // seeds: int64 [B], the bits of sample_seed() of each sample, on the device
  // of the draws. Throws ConfigError for any other tensor.
  explicit SampleRandom(const at::Tensor& seeds);

  // Each call returns [B, shape_of_one_sample...]. Types are double (53 bits),
  // float (24 bits for uniform, 32 for normal), and half and bfloat16, which
  // are those of float, rounded. A float is not the double of the same place.

  // [0, 1); rounding to half or bfloat16 may give 1.
  at::Tensor uniform(at::IntArrayRef shape_of_one_sample,
                     at::ScalarType dtype = at::kFloat);
  // Mean 0, deviation 1.
  at::Tensor normal(at::IntArrayRef shape_of_one_sample,
                    at::ScalarType dtype = at::kFloat);
  // int64, 0 ... below - 1, each equally likely. Throws ConfigError unless
  // below > 0.
  at::Tensor integers(int64_t below, at::IntArrayRef shape_of_one_sample);

 private:
  at::Tensor seeds_;
  uint64_t next_stream_ = uint64_t{1} << 32;
};

}  // namespace lockstep
