#include "lockstep/engine/step_rollback.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "lockstep/optim/tensor_groups.h"
#include "lockstep/tensor/generator.h"

namespace lockstep::engine {
namespace {

void set_generator(c10::Device device, const at::Tensor& state) {
  at::Generator generator = tensor::device_generator(device);
  generator.set_state(state);
}

}  // namespace

StepRollback::StepRollback(Learner& learner, c10::Device device)
    : learner_(learner), device_(device), buffers_(learner.model().buffers()) {
  for (const at::Tensor& buffer : buffers_) {
    copies_.push_back(buffer.detach().clone());
  }
}

void StepRollback::note() {
  const at::NoGradGuard no_grad;
  if (!buffers_.empty()) optim::copy_values(buffers_, copies_);
  host_generator_ = tensor::device_generator(at::kCPU).get_state();
  if (!device_.is_cpu()) {
    device_generator_ = tensor::device_generator(device_).get_state();
  }
  num_updates_.clear();
  for (const Ema& average : learner_.averages()) {
    num_updates_.push_back(average.num_updates());
  }
}

void StepRollback::undo() {
  learner_.abandon_step();
  const at::NoGradGuard no_grad;
  if (!buffers_.empty()) optim::copy_values(copies_, buffers_);
  set_generator(at::kCPU, host_generator_);
  if (!device_.is_cpu()) set_generator(device_, device_generator_);
  for (size_t i = 0; i < num_updates_.size(); ++i) {
    Ema& average = learner_.averages()[i];
    // An update is counted before it is made.
    if (average.num_updates() == num_updates_[i]) continue;
    average.load(
        {.averages = average.averages(), .num_updates = num_updates_[i]});
  }
}

}  // namespace lockstep::engine
