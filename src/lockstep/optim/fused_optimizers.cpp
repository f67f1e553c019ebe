#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/optim/tensor_groups.h"
#include "lockstep/optimizer.h"

namespace lockstep {
namespace {

std::vector<ParameterGroup> one_group(std::vector<at::Tensor> parameters) {
  std::vector<ParameterGroup> groups(1);
  groups.front().parameters = std::move(parameters);
  return groups;
}

std::vector<at::Tensor> in_float(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> wide;
  wide.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    wide.push_back(tensor.to(at::kFloat));
  }
  return wide;
}

void check_config(const AdamConfig& config) {
  const auto is_rate = [](double beta) { return beta >= 0 && beta < 1; };
  if (is_rate(config.beta1) && is_rate(config.beta2) && config.eps >= 0) return;
  throw ConfigError(fmt::format(
      "Adam with beta1 {}, beta2 {}, eps {}: betas must be in [0, 1) and eps 0 "
      "or above",
      config.beta1, config.beta2, config.eps));
}

void check_config(const SgdConfig& config) {
  if (!(config.momentum >= 0)) {
    throw ConfigError(fmt::format("SGD with momentum {}: it must be 0 or above",
                                  config.momentum));
  }
  if (config.nesterov && (config.momentum == 0 || config.dampening != 0)) {
    throw ConfigError(fmt::format(
        "SGD with nesterov needs a momentum above 0 and no dampening; they are "
        "{} and {}",
        config.momentum, config.dampening));
  }
}

}  // namespace

AdamFamily::AdamFamily(std::vector<ParameterGroup> groups,
                       const AdamConfig& config, Decay decay)
    : Optimizer(std::move(groups),
                {.kind = decay == Decay::kDecoupled ? "adamw" : "adam",
                 .lr = config.lr,
                 .weight_decay = config.weight_decay.value_or(
                     decay == Decay::kDecoupled ? 1e-2 : 0),
                 .state_names = {"step", "exp_avg", "exp_avg_sq"}}),
      config_(config),
      decay_(decay) {
  check_config(config);
}

void AdamFamily::update(const Slice& slice) const {
  const auto kernel = [&](auto fused) {
    fused(slice.parameters, slice.gradients, slice.state[1], slice.state[2],
          at::TensorList{}, slice.state[0], slice.lr, config_.beta1,
          config_.beta2, slice.weight_decay, config_.eps, /*amsgrad=*/false,
          /*maximize=*/false, std::nullopt, slice.found_inf);
  };
  const std::vector<at::Tensor>& steps = slice.state[0];
  at::_foreach_add_(steps, 1);
  if (decay_ == Decay::kDecoupled) {
    kernel([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
  } else {
    kernel([](auto&&... arguments) { at::_fused_adam_(arguments...); });
  }
  // The kernels leave everything as it is when a step is skipped, but want the
  // counters already raised.
  if (slice.found_inf) {
    at::_foreach_sub_(steps,
                      std::vector<at::Tensor>(steps.size(), *slice.found_inf));
  }
}

std::map<std::string, double> AdamFamily::settings() const {
  return {
      {"beta1", config_.beta1}, {"beta2", config_.beta2}, {"eps", config_.eps}};
}

AdamW::AdamW(std::vector<ParameterGroup> groups, AdamConfig config)
    : AdamFamily(std::move(groups), config, Decay::kDecoupled) {}

AdamW::AdamW(std::vector<at::Tensor> parameters, AdamConfig config)
    : AdamW(one_group(std::move(parameters)), config) {}

Adam::Adam(std::vector<ParameterGroup> groups, AdamConfig config)
    : AdamFamily(std::move(groups), config, Decay::kInGradient) {}

Adam::Adam(std::vector<at::Tensor> parameters, AdamConfig config)
    : Adam(one_group(std::move(parameters)), config) {}

Sgd::Sgd(std::vector<ParameterGroup> groups, SgdConfig config)
    : Optimizer(
          std::move(groups),
          {.kind = "sgd",
           .lr = config.lr,
           .weight_decay = config.weight_decay,
           .state_names = config.momentum == 0
                              ? std::vector<std::string>{}
                              : std::vector<std::string>{"momentum_buffer"}}),
      config_(config) {
  check_config(config);
}

Sgd::Sgd(std::vector<at::Tensor> parameters, SgdConfig config)
    : Sgd(one_group(std::move(parameters)), config) {}

// libtorch's SGD kernel for bfloat16 on the CPU leaves out whole vectors and
// reads beyond the momentum (pytorch issue 191763): the float32 one computes
// what it should.
void Sgd::update(const Slice& slice) const {
  const at::Tensor& any = slice.parameters.front();
  if (any.scalar_type() != at::kBFloat16 || !any.is_cpu()) {
    run_kernel(slice);
    return;
  }
  Slice wide = slice;
  wide.parameters = in_float(slice.parameters);
  wide.gradients = in_float(slice.gradients);
  for (auto& tensors : wide.state) tensors = in_float(tensors);
  run_kernel(wide);
  optim::copy_values(wide.parameters, slice.parameters);
  for (size_t i = 0; i < wide.state.size(); ++i) {
    optim::copy_values(wide.state[i], slice.state[i]);
  }
}

void Sgd::run_kernel(const Slice& slice) const {
  const bool has_momentum = config_.momentum != 0;
  at::_fused_sgd_(
      slice.parameters, slice.gradients,
      has_momentum ? at::TensorList(slice.state[0]) : at::TensorList{},
      slice.weight_decay, config_.momentum, slice.lr, config_.dampening,
      config_.nesterov, /*maximize=*/false, has_momentum && slice.is_first_step,
      std::nullopt, slice.found_inf);
}

std::map<std::string, double> Sgd::settings() const {
  return {{"momentum", config_.momentum},
          {"dampening", config_.dampening},
          {"nesterov", config_.nesterov ? 1 : 0}};
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view kind,
                                          std::vector<ParameterGroup> groups,
                                          const OptimizerConfig& config) {
  const AdamConfig adam{.lr = config.lr,
                        .beta1 = config.beta1,
                        .beta2 = config.beta2,
                        .eps = config.eps,
                        .weight_decay = config.weight_decay};
  if (kind == "adamw") return std::make_unique<AdamW>(std::move(groups), adam);
  if (kind == "adam") return std::make_unique<Adam>(std::move(groups), adam);
  if (kind == "sgd") {
    return std::make_unique<Sgd>(
        std::move(groups),
        SgdConfig{.lr = config.lr,
                  .momentum = config.momentum,
                  .dampening = config.dampening,
                  .weight_decay = config.weight_decay.value_or(0),
                  .nesterov = config.nesterov});
  }
  throw ConfigError(
      fmt::format("unknown optimizer '{}'; use adamw, adam or sgd", kind));
}

}  // namespace lockstep
