#include "lockstep/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/base/shape_text.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/optim/gradient_layout.h"

namespace lockstep {
namespace {

constexpr std::string_view kStep = "step";

void check_lr(double lr) {
  if (std::isfinite(lr) && lr >= 0) return;
  throw ConfigError(
      fmt::format("learning rate {}: it must be 0 or above, and finite", lr));
}

void check_parameter(const at::Tensor& parameter, const std::string& group) {
  if (!parameter.defined()) {
    throw ConfigError(
        fmt::format("group '{}' holds an undefined tensor as a parameter; "
                    "leave it out",
                    group));
  }
  const auto dtype = parameter.scalar_type();
  if (dtype != at::kFloat && dtype != at::kDouble && dtype != at::kBFloat16) {
    throw ConfigError(fmt::format(
        "group '{}': a parameter of shape {} is {}; train in float32, float64 "
        "or bfloat16 (for float16 keep the parameters in float32 and use "
        "Autocast)",
        group, base::shape_text(parameter.sizes()), c10::toString(dtype)));
  }
  if (!parameter.is_leaf() || !parameter.is_non_overlapping_and_dense()) {
    throw ConfigError(fmt::format(
        "group '{}': a tensor of shape {} is a result or a view with gaps, not "
        "a parameter; pass those of module->parameters()",
        group, base::shape_text(parameter.sizes())));
  }
}

void check_found_inf(const std::optional<at::Tensor>& found_inf) {
  if (!found_inf) return;
  if (found_inf->dim() == 0 && found_inf->scalar_type() == at::kFloat) return;
  throw ConfigError(fmt::format(
      "found_inf is {} of shape {}; it must be float32 without dimensions, as "
      "prepare_gradients() gives it",
      c10::toString(found_inf->scalar_type()),
      base::shape_text(found_inf->sizes())));
}

}  // namespace

Optimizer::Optimizer(std::vector<ParameterGroup> groups, Setup setup)
    : kind_(std::move(setup.kind)),
      weight_decay_(setup.weight_decay),
      state_names_(std::move(setup.state_names)),
      groups_(std::move(groups)) {
  set_lr(setup.lr);
  std::set<const c10::TensorImpl*> seen;
  for (const ParameterGroup& group : groups_) {
    check_group(group);
    std::vector<Member>& members = members_.emplace_back();
    for (const at::Tensor& parameter : group.parameters) {
      check_parameter(parameter, group.name);
      if (!seen.insert(parameter.unsafeGetTensorImpl()).second) {
        throw ConfigError(fmt::format(
            "a parameter of shape {} is given twice, the second time in group "
            "'{}'; name each once",
            base::shape_text(parameter.sizes()), group.name));
      }
      members.push_back({.parameter = parameter, .state = {}});
    }
  }
  if (seen.empty()) {
    throw ConfigError(
        "the optimizer has no parameters; is the whole model frozen?");
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::check_group(const ParameterGroup& group) const {
  const double decay = group.weight_decay.value_or(weight_decay_);
  if (decay >= 0 && group.lr_scale >= 0) return;
  throw ConfigError(fmt::format(
      "group '{}': weight decay {} and lr_scale {} must be 0 or above",
      group.name, decay, group.lr_scale));
}

void Optimizer::set_lr(double lr) {
  check_lr(lr);
  lr_ = lr;
}

std::vector<at::Tensor> Optimizer::new_state(
    const at::Tensor& parameter) const {
  std::vector<at::Tensor> state;
  state.reserve(state_names_.size());
  for (const std::string& name : state_names_) {
    state.push_back(
        name == kStep ? at::zeros({}, parameter.options().dtype(at::kFloat))
                      : at::zeros_like(parameter, at::MemoryFormat::Preserve));
  }
  return state;
}

std::vector<Optimizer::Slice> Optimizer::slices_of(
    size_t group, const std::optional<at::Tensor>& found_inf) {
  std::vector<Slice> slices;
  for (Member& member : members_[group]) {
    const at::Tensor& parameter = member.parameter;
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    const bool is_first_step = member.state.empty();
    if (is_first_step) member.state = new_state(parameter);

    auto slice =
        std::find_if(slices.begin(), slices.end(), [&](const Slice& s) {
          const at::Tensor& other = s.parameters.front();
          return s.is_first_step == is_first_step &&
                 other.device() == parameter.device() &&
                 other.scalar_type() == parameter.scalar_type();
        });
    if (slice == slices.end()) {
      slice = slices.insert(
          slice, Slice{.lr = lr_ * groups_[group].lr_scale,
                       .weight_decay =
                           groups_[group].weight_decay.value_or(weight_decay_),
                       .is_first_step = is_first_step,
                       .state = std::vector<std::vector<at::Tensor>>(
                           state_names_.size())});
      if (found_inf) {
        slice->found_inf =
            found_inf->to(parameter.device(), /*non_blocking=*/true);
      }
    }
    slice->parameters.push_back(parameter);
    slice->gradients.push_back(optim::laid_out_as(parameter, gradient));
    for (size_t i = 0; i < member.state.size(); ++i) {
      slice->state[i].push_back(member.state[i]);
    }
  }
  return slices;
}

void Optimizer::step(const std::optional<at::Tensor>& found_inf) {
  check_found_inf(found_inf);
  const at::NoGradGuard no_grad;
  // All memory is taken before the first parameter changes: a step that finds
  // none left can be done again.
  std::vector<Slice> slices;
  for (size_t group = 0; group < groups_.size(); ++group) {
    for (Slice& slice : slices_of(group, found_inf)) {
      slices.push_back(std::move(slice));
    }
  }
  for (const Slice& slice : slices) update(slice);
}

void Optimizer::clear_gradients() {
  for (const auto& members : members_) {
    for (const Member& member : members) {
      member.parameter.mutable_grad().reset();
    }
  }
}

void Optimizer::step_and_clear(const std::optional<at::Tensor>& found_inf) {
  step(found_inf);
  clear_gradients();
}

OptimizerState Optimizer::state() const {
  OptimizerState state;
  for (size_t group = 0; group < groups_.size(); ++group) {
    auto settings = this->settings();
    settings["lr"] = lr_ * groups_[group].lr_scale;
    settings["weight_decay"] =
        groups_[group].weight_decay.value_or(weight_decay_);
    state.groups.push_back(std::move(settings));
    for (const Member& member : members_[group]) {
      auto& named = state.parameters.emplace_back();
      for (size_t i = 0; i < member.state.size(); ++i) {
        named[state_names_[i]] = member.state[i];
      }
    }
  }
  return state;
}

std::vector<at::Tensor> Optimizer::loaded_state(
    const Member& member, size_t number,
    const std::map<std::string, at::Tensor>& saved) const {
  if (saved.empty()) return {};
  std::vector<at::Tensor> state = new_state(member.parameter);
  for (const auto& [name, tensor] : saved) {
    const auto at = std::find(state_names_.begin(), state_names_.end(), name);
    if (at == state_names_.end() || saved.size() != state_names_.size()) {
      std::vector<std::string> names;
      names.reserve(saved.size());
      for (const auto& entry : saved) names.push_back(entry.first);
      throw ConfigError(fmt::format(
          "the saved state of parameter {} holds {}, but {} with these "
          "settings needs {}; resume with the optimizer that saved it",
          number, base::join(names, ", "), kind_,
          state_names_.empty() ? "none" : base::join(state_names_, ", ")));
    }
    at::Tensor& own = state[static_cast<size_t>(at - state_names_.begin())];
    if (own.sizes() != tensor.sizes()) {
      throw ConfigError(fmt::format(
          "the saved {} of parameter {} has shape {}, this model needs {}; "
          "resume with the model that saved it",
          name, number, base::shape_text(tensor.sizes()),
          base::shape_text(own.sizes())));
    }
    own.copy_(tensor);
  }
  return state;
}

void Optimizer::load(const OptimizerState& saved) {
  const at::NoGradGuard no_grad;
  size_t num_parameters = 0;
  for (const auto& members : members_) num_parameters += members.size();
  if (saved.parameters.size() != num_parameters ||
      saved.groups.size() != groups_.size()) {
    throw ConfigError(fmt::format(
        "the saved optimizer has {} parameters in {} groups, this one {} in "
        "{}; resume with the model and the groups that saved it",
        saved.parameters.size(), saved.groups.size(), num_parameters,
        groups_.size()));
  }
  std::vector<std::vector<at::Tensor>> states;
  for (const auto& members : members_) {
    for (const Member& member : members) {
      const size_t number = states.size();
      states.push_back(loaded_state(member, number, saved.parameters[number]));
    }
  }
  const auto lr = saved.groups.front().find("lr");
  if (lr != saved.groups.front().end() && groups_.front().lr_scale > 0) {
    set_lr(lr->second / groups_.front().lr_scale);
  }
  auto next = states.begin();
  for (auto& members : members_) {
    for (Member& member : members) member.state = std::move(*next++);
  }
}

}  // namespace lockstep
