// The ability to draw samples: images or texts, while training and by
// `lockstep sample`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/output_file.h"
#include "lockstep/sample_random.h"

namespace lockstep {

// A task implements it beside Task. Items are numbered; each depends on its
// number and its draws alone, so ranks can share them.
class LOCKSTEP_EXPORT Sampling {
 public:
  virtual ~Sampling() = default;

  // Items of one sampling; 0: this task has nothing to show.
  virtual int64_t num_items() const = 0;

  // One row per item. The model is in eval mode, without gradients. Numbers
  // beyond num_items() occur where ranks do not divide it; their rows are
  // dropped.
  virtual at::Tensor sample(std::span<const int64_t> items,
                            SampleRandom& random) = 0;

  // The files that show all items of a sampling, given in order on the CPU.
  virtual std::vector<OutputFile> render(const at::Tensor& items) = 0;

  // Whether trainings sample with every moving average of the weights, too.
  virtual bool samples_averages() const { return false; }
};

}  // namespace lockstep
