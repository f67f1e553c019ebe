// A data set: numbered samples, each a few tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {

using Sample = std::vector<at::Tensor>;

// All worker threads share one data set: get() must be thread-safe.
class LOCKSTEP_EXPORT Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;

  // All randomness of a sample (crops, flips, noise) must come from `seed`,
  // never from torch's global generator: then a sample is the same on any
  // number of ranks and threads.
  virtual Sample get(int64_t index, uint64_t seed) const = 0;

  // Makes a batch of samples. Default: stacks the k-th tensors of all samples.
  virtual Sample collate(std::vector<Sample> samples) const;

  // Lengths of the samples, in any unit, if they differ much: training then
  // batches samples of similar length. Default: none.
  virtual std::vector<int64_t> lengths() const { return {}; }
};

// Tensors whose first dimension counts the samples.
class LOCKSTEP_EXPORT TensorDataset final : public Dataset {
 public:
  // Throws ConfigError when the first dimensions differ.
  explicit TensorDataset(std::vector<at::Tensor> tensors);

  int64_t size() const override;
  Sample get(int64_t index, uint64_t seed) const override;

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace lockstep
