// The ability to predict on the user's own inputs, by `lockstep sample`.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/output_file.h"

namespace lockstep {

// A task implements it in addition to Task.
class LOCKSTEP_EXPORT Prediction {
 public:
  virtual ~Prediction() = default;

  // Number of the user's inputs; 0: none, the task samples instead.
  virtual int64_t num_inputs() const = 0;

  // The files made from one input. Ranks split the inputs; each writes its own
  // files. The model is in eval mode, without gradients. Throws FormatError or
  // IoError for an input that cannot be read.
  virtual std::vector<OutputFile> predict(int64_t input) = 0;
};

}  // namespace lockstep
