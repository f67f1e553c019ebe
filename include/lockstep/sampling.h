// The ability to draw samples, such as images or texts: during training and by
// `lockstep sample`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/output_file.h"
#include "lockstep/random.h"

namespace lockstep {

// A task implements it in addition to Task. Items are numbered; each depends
// only on its number and its draws, so ranks can split the work.
class LOCKSTEP_EXPORT Sampling {
 public:
  virtual ~Sampling() = default;

  // Items per sampling. 0: nothing to show; `lockstep sample` then says that
  // the recipe cannot sample.
  virtual int64_t num_items() const = 0;

  // One row per item, on the model's device. The model is in eval mode, without
  // gradients. Numbers beyond num_items() occur if it is not a multiple of the
  // number of ranks; their rows are dropped.
  virtual at::Tensor sample(std::span<const int64_t> items,
                            SampleRandom& random) = 0;

  // Renders all items of a sampling, in order and on the CPU, to files.
  virtual std::vector<OutputFile> render(const at::Tensor& items) = 0;

  // Whether training also samples with each moving average of the weights.
  virtual bool samples_averages() const { return false; }
};

}  // namespace lockstep
