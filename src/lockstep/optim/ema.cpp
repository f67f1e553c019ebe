#include "lockstep/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/shape_text.h"
#include "lockstep/error.h"
#include "lockstep/optim/tensor_groups.h"

namespace lockstep {
namespace {

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.detach().clone());
  }
  return copies;
}

std::vector<at::Tensor> references_to(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> references;
  references.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    references.push_back(tensor.detach());
  }
  return references;
}

// Memory that other ranks read must not change: the parameters are then moved
// to that of the values.
void set_values(const std::vector<at::Tensor>& parameters,
                const std::vector<at::Tensor>& values, bool is_shared) {
  const at::NoGradGuard no_grad;
  if (!is_shared) {
    optim::copy_values(values, parameters);
    return;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].set_data(values[i]);
  }
}

}  // namespace

Ema::Ema(std::vector<at::Tensor> parameters, EmaConfig config)
    : config_(config), parameters_(std::move(parameters)) {
  if (!(config_.decay >= 0) || !(config_.decay <= 1) ||
      config_.update_after < 0) {
    throw ConfigError(fmt::format(
        "average with decay {} after {} updates: the decay must be in [0, 1], "
        "the updates 0 or above",
        config_.decay, config_.update_after));
  }
  averages_ = copies_of(parameters_);
  for (const auto& places : optim::by_device_and_dtype(parameters_)) {
    lists_.push_back({.averages = optim::pick(averages_, places),
                      .parameters = optim::pick(parameters_, places)});
  }
}

double Ema::count_update() {
  ++num_updates_;
  if (num_updates_ <= config_.update_after) return 1;
  if (!config_.warmup) return 1 - config_.decay;
  const auto n = static_cast<double>(num_updates_);
  return 1 - std::min(config_.decay, (1 + n) / (10 + n));
}

void Ema::average(const List& list, double weight) {
  if (weight == 1 || !list.averages[0].is_floating_point()) {
    optim::copy_values(list.parameters, list.averages);
  } else {
    at::_foreach_lerp_(list.averages, list.parameters, weight);
  }
}

void Ema::update() {
  const at::NoGradGuard no_grad;
  const double weight = count_update();
  for (const List& list : lists_) average(list, weight);
}

EmaState Ema::state() const {
  return {.averages = averages_, .num_updates = num_updates_};
}

void Ema::load(const EmaState& state) {
  if (state.averages.size() != averages_.size()) {
    throw ConfigError(fmt::format(
        "the saved average has {} tensors, this model {}; resume with the "
        "model that saved it",
        state.averages.size(), averages_.size()));
  }
  for (size_t i = 0; i < averages_.size(); ++i) {
    if (state.averages[i].sizes() == averages_[i].sizes()) continue;
    throw ConfigError(fmt::format(
        "tensor {} of the saved average has shape {}, this model needs {}; "
        "resume with the model that saved it",
        i, base::shape_text(state.averages[i].sizes()),
        base::shape_text(averages_[i].sizes())));
  }
  const at::NoGradGuard no_grad;
  optim::copy_values(state.averages, averages_);
  num_updates_ = state.num_updates;
}

EmaScope::EmaScope(const Ema& ema)
    : parameters_(ema.parameters()),
      saved_(ema.is_shared_ ? references_to(parameters_)
                            : copies_of(parameters_)),
      is_shared_(ema.is_shared_) {
  set_values(parameters_, ema.averages(), is_shared_);
}

EmaScope::~EmaScope() { set_values(parameters_, saved_, is_shared_); }

}  // namespace lockstep
