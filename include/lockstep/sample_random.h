// Tensors of random draws for the samples of one batch: noise, time steps,
// dropped labels, masks.
#pragma once

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

// Row b of a result depends on seeds[b] and on which call it is (the first, the
// second, ...), never on the batch's size or order, the device, threads or the
// number of processes. All bits are equal on CPU and CUDA. On CUDA a call
// queues one kernel on the current stream and does not wait. Not thread-safe.
class SampleRandom {
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
