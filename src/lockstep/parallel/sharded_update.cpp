#include "lockstep/parallel/sharded_update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lockstep/comm/shared_tensors.h"
#include "lockstep/error.h"
#include "lockstep/optim/gradient_layout.h"
#include "lockstep/optim/parameter_list.h"

namespace lockstep::parallel {
namespace {

// All elements in the order in which they lie in memory.
at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

at::Tensor elements(const at::Tensor& tensor, int64_t begin, int64_t end) {
  return in_memory_order(tensor).slice(0, begin, end);
}

// Copies rank 0's values to shared memory, and moves the tensors there.
void share(const World& world, const std::vector<at::Tensor>& tensors) {
  const auto shared = comm::make_shared_tensors(world, tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (world.is_main()) shared[i].copy_(tensors[i]);
    tensors[i].set_data(shared[i]);
  }
}

}  // namespace

ShardedUpdate::ShardedUpdate(const World& world, Optimizer& optimizer,
                             std::vector<Ema>& averages, double max_norm)
    : world_(world),
      optimizer_(optimizer),
      averages_(averages),
      max_norm_(max_norm),
      buckets_(world, optim::parameters_of(optimizer.groups())) {
  const at::NoGradGuard no_grad;
  for (size_t group = 0; group < optimizer_.members_.size(); ++group) {
    for (Optimizer::Member& member : optimizer_.members_[group]) {
      parameters_.push_back({.member = &member, .group = group});
    }
  }
  share_parameters();
  share_state();
  share_averages();
  choose_parts();
  world_.group()->barrier()->wait();
}

void ShardedUpdate::share_parameters() {
  std::vector<at::Tensor> tensors;
  for (const Parameter& parameter : parameters_) {
    tensors.push_back(parameter.member->parameter);
    if (tensors.back().scalar_type() != tensors.front().scalar_type()) {
      throw ConfigError(
          "--shard_optimizer needs parameters of one type, and this model has "
          "several; leave it out");
    }
  }
  share(world_, tensors);
}

void ShardedUpdate::share_state() {
  std::vector<at::Tensor> like;
  for (const Parameter& parameter : parameters_) {
    for (const std::string& name : optimizer_.state_names_) {
      if (name != "step") like.push_back(parameter.member->parameter);
    }
  }
  const auto shared = comm::make_shared_tensors(world_, like);
  auto next = shared.begin();
  for (Parameter& parameter : parameters_) {
    for (const std::string& name : optimizer_.state_names_) {
      parameter.state.push_back(name == "step" ? at::Tensor() : *next++);
    }
  }
}

void ShardedUpdate::share_averages() {
  for (Ema& average : averages_) {
    share(world_, average.averages());
    average.is_shared_ = true;
  }
}

// Each rank takes its share of all elements.
void ShardedUpdate::choose_parts() {
  parts_.clear();
  const auto& edges = buckets_.edges();
  const std::vector<int> measuring = assign_whole_tensors(edges);
  for (size_t place = 0; place < parameters_.size(); ++place) {
    const at::Tensor& tensor = parameters_[place].member->parameter;
    const int64_t begin = edges[place][world_.rank()];
    const int64_t end = edges[place][world_.rank() + 1];
    parameters_[place].is_measured_here = measuring[place] == world_.rank();
    if (begin == end) continue;
    Part part{.place = place,
              .begin = begin,
              .end = end,
              .values = elements(tensor, begin, end)};
    for (const Ema& average : averages_) {
      const auto& all = average.parameters();
      const auto at = std::find_if(
          all.begin(), all.end(),
          [&](const at::Tensor& other) { return other.is_same(tensor); });
      if (at == all.end()) continue;
      part.averages.push_back(
          elements(average.averages()[at - all.begin()], begin, end));
    }
    parts_.push_back(std::move(part));
  }
}

// The first step makes the state, and a resumed run has loaded its own: both
// move to shared memory, each rank its part.
bool ShardedUpdate::adopt_state(Parameter& parameter, const Part* part) {
  std::vector<at::Tensor>& state = parameter.member->state;
  const bool is_first_step = state.empty();
  if (is_first_step) {
    for (const at::Tensor& shared : parameter.state) {
      state.push_back(shared.defined() ? shared : at::zeros({}, at::kFloat));
    }
  }
  for (size_t i = 0; i < state.size(); ++i) {
    const at::Tensor& shared = parameter.state[i];
    if (!shared.defined()) continue;
    if (part != nullptr) {
      const at::Tensor own = elements(shared, part->begin, part->end);
      if (is_first_step) {
        own.zero_();
      } else if (!state[i].is_alias_of(shared)) {
        own.copy_(elements(state[i], part->begin, part->end));
      }
    }
    state[i] = shared;
  }
  return is_first_step;
}

// The norm of all gradients as prepare_gradients() computes it: the norms of
// single gradients come from one rank each. Also waits until no rank computes
// with the weights any more.
at::Tensor ShardedUpdate::measure(
    const std::optional<at::Tensor>& inverse_scale) {
  std::vector<at::Tensor> gradients;
  std::vector<int64_t> places;
  std::vector<int64_t> with_gradient;
  for (size_t place = 0; place < parameters_.size(); ++place) {
    const Parameter& parameter = parameters_[place];
    if (!parameter.has_gradient()) continue;
    with_gradient.push_back(static_cast<int64_t>(place));
    if (!parameter.is_measured_here) continue;
    buckets_.complete(place);
    places.push_back(static_cast<int64_t>(place));
    gradients.push_back(parameter.member->parameter.grad());
  }
  at::Tensor norms = at::zeros({static_cast<int64_t>(parameters_.size())},
                               parameters_.front().member->parameter.options());
  if (!gradients.empty()) {
    if (inverse_scale) optim::unscale_gradients(gradients, *inverse_scale);
    const auto own = at::_foreach_norm(gradients, 2);
    for (size_t i = 0; i < own.size(); ++i) norms[places[i]].copy_(own[i]);
  }
  world_.all_reduce(norms);
  return at::linalg_vector_norm(
      norms.index_select(0, at::tensor(with_gradient)), 2);
}

// Those that measure() has not unscaled as a whole are unscaled here.
void ShardedUpdate::take_gradients(
    const std::optional<at::Tensor>& inverse_scale, const at::Tensor& norm) {
  std::vector<at::Tensor> all;
  std::vector<at::Tensor> scaled;
  for (Part& part : parts_) {
    const Parameter& parameter = parameters_[part.place];
    if (!parameter.has_gradient()) continue;
    const at::Tensor& tensor = parameter.member->parameter;
    part.gradient = elements(optim::laid_out_as(tensor, tensor.grad()),
                             part.begin, part.end);
    all.push_back(part.gradient);
    if (!parameter.is_measured_here) scaled.push_back(part.gradient);
  }
  if (inverse_scale) optim::unscale_gradients(scaled, *inverse_scale);
  if (max_norm_ > 0) optim::clip_gradients(all, norm, max_norm_);
}

void ShardedUpdate::update(const at::Tensor& found_inf) {
  std::vector<Part*> part_of(parameters_.size());
  for (Part& part : parts_) part_of[part.place] = &part;
  // Per group, and whether they have been updated before.
  std::map<std::pair<size_t, bool>, Optimizer::Slice> slices;
  for (size_t place = 0; place < parameters_.size(); ++place) {
    Parameter& parameter = parameters_[place];
    if (!parameter.has_gradient()) continue;
    const Part* part = part_of[place];
    const bool is_first_step = adopt_state(parameter, part);
    const auto& state = parameter.member->state;
    if (part == nullptr) {
      // Another rank updates it; the counter is this rank's own.
      for (size_t i = 0; i < state.size(); ++i) {
        if (!parameter.state[i].defined()) state[i].add_(1).sub_(found_inf);
      }
      continue;
    }
    Optimizer::Slice& slice = slices[{parameter.group, is_first_step}];
    const ParameterGroup& group = optimizer_.groups()[parameter.group];
    slice.lr = optimizer_.lr() * group.lr_scale;
    slice.weight_decay = group.weight_decay.value_or(optimizer_.weight_decay_);
    slice.is_first_step = is_first_step;
    slice.found_inf = found_inf;
    slice.parameters.push_back(part->values);
    slice.gradients.push_back(part->gradient);
    slice.state.resize(state.size());
    for (size_t i = 0; i < state.size(); ++i) {
      slice.state[i].push_back(parameter.state[i].defined()
                                   ? elements(state[i], part->begin, part->end)
                                   : state[i]);
    }
  }
  for (const auto& [key, slice] : slices) optimizer_.update(slice);
}

void ShardedUpdate::average() {
  for (size_t i = 0; i < averages_.size(); ++i) {
    const double weight = averages_[i].count_update();
    Ema::List list;
    for (const Part& part : parts_) {
      list.parameters.push_back(part.values);
      list.averages.push_back(part.averages[i]);
    }
    if (!list.parameters.empty()) Ema::average(list, weight);
  }
}

optim::GradientReport ShardedUpdate::run(
    const std::optional<at::Tensor>& inverse_scale) {
  const at::NoGradGuard no_grad;
  buckets_.compare_places();
  const at::Tensor norm = measure(inverse_scale);
  take_gradients(inverse_scale, norm);
  const optim::GradientReport report = optim::report_norm(norm);
  update(report.found_inf);
  average();
  for (Part& part : parts_) part.gradient.reset();
  if (buckets_.follow()) choose_parts();
  optimizer_.clear_gradients();
  // No rank computes with the new weights before all have written their part.
  world_.group()->barrier()->wait();
  return report;
}

}  // namespace lockstep::parallel
