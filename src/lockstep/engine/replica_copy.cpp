#include "lockstep/engine/replica_copy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include "lockstep/optim/parameter_list.h"
#include "lockstep/optim/tensor_groups.h"

namespace lockstep::engine {
namespace {

size_t num_tensors(const OptimizerState& state) {
  size_t number = 0;
  for (const auto& parameter : state.parameters) number += parameter.size();
  return number;
}

}  // namespace

// Those of the optimizer as of the last note(): its first step makes more.
std::vector<at::Tensor> ReplicaCopy::tensors() const {
  std::vector<at::Tensor> all =
      optim::parameters_of(learner_.optimizer().groups());
  for (const auto& parameter : state_.parameters) {
    for (const auto& [name, tensor] : parameter) all.push_back(tensor);
  }
  for (const Ema& average : learner_.averages()) {
    all.insert(all.end(), average.averages().begin(), average.averages().end());
  }
  if (learner_.scaler() != nullptr) {
    const optim::GradScalerState scaling = learner_.scaler()->state();
    all.insert(all.end(), {scaling.scale, scaling.growth_tracker});
  }
  return all;
}

void ReplicaCopy::note() {
  const at::NoGradGuard no_grad;
  state_ = learner_.optimizer().state();
  const std::vector<at::Tensor> all = tensors();
  if (copies_.size() != all.size()) {
    copies_.clear();
    for (const at::Tensor& tensor : all) {
      copies_.push_back(at::empty_like(tensor));
    }
  }
  optim::copy_values(all, copies_);
  num_updates_.clear();
  for (const Ema& average : learner_.averages()) {
    num_updates_.push_back(average.num_updates());
  }
}

void ReplicaCopy::restore() {
  const at::NoGradGuard no_grad;
  optim::copy_values(copies_, tensors());
  // A first step makes state that was not there; to load needs memory.
  if (num_tensors(learner_.optimizer().state()) != num_tensors(state_)) {
    learner_.optimizer().load(state_);
  }
  for (size_t i = 0; i < num_updates_.size(); ++i) {
    Ema& average = learner_.averages()[i];
    average.load(
        {.averages = average.averages(), .num_updates = num_updates_[i]});
  }
}

}  // namespace lockstep::engine
