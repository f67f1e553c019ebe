// Makes a step that failed repeatable: puts back what forward passes change.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/engine/learner.h"

namespace lockstep::engine {

// The model's buffers, libtorch's generators and the counters of the averages.
// Takes memory for one copy of the buffers, once. Never waits for the device.
class StepRollback {
 public:
  StepRollback(Learner& learner, c10::Device device);

  // Before each step.
  void note();
  // After an exception in a step that can be repeated, as if it had not begun.
  void undo();

 private:
  Learner& learner_;
  c10::Device device_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> copies_;
  at::Tensor host_generator_;
  at::Tensor device_generator_;  // Undefined on the CPU.
  std::vector<int64_t> num_updates_;
};

}  // namespace lockstep::engine
