// Optimizer and averages of CPU ranks that share one copy of a model: each rank
// updates a part of it.
#pragma once

#include <optional>
#include <vector>

#include "lockstep/ema.h"
#include "lockstep/optim/gradient_step.h"
#include "lockstep/optimizer.h"
#include "lockstep/parallel/gradient_buckets.h"
#include "lockstep/world.h"

namespace lockstep::parallel {

// What prepare_gradients(), Optimizer::step() and Ema::update() do, with their
// bits; time and memory are divided by the ranks. A rank that dies within run()
// leaves weights of two steps: only a checkpoint can be resumed.
//
// Gradients must have been summed over all ranks. From the second step in which
// they lie in the same buckets (GradientBuckets), an all_reduce of such a
// bucket gives each rank the sums of its share alone.
//
// Optimizer and averages must outlive it and keep their number; their state may
// be loaded between two steps, by all ranks.
class ShardedUpdate {
 public:
  // Moves parameters, optimizer state and averages to shared memory, with the
  // values of rank 0. A collective. Throws ConfigError when the ranks share no
  // memory or the parameters differ in type.
  ShardedUpdate(const World& world, Optimizer& optimizer,
                std::vector<Ema>& averages, double max_norm);

  // One step; clears the gradients. A collective.
  optim::GradientReport run(const std::optional<at::Tensor>& inverse_scale);

 private:
  struct Parameter {
    Optimizer::Member* member = nullptr;
    size_t group = 0;
    // In shared memory, in the order of the optimizer's names; undefined for
    // the step counter, of which each rank has its own.
    std::vector<at::Tensor> state = {};
    // This rank computes the norm of its gradient.
    bool is_measured_here = false;

    bool has_gradient() const { return member->parameter.grad().defined(); }
  };
  // The elements of a parameter that this rank updates, as they lie in memory.
  struct Part {
    size_t place = 0;  // Among the parameters.
    int64_t begin = 0;
    int64_t end = 0;
    at::Tensor values = {};
    std::vector<at::Tensor> averages = {};
    at::Tensor gradient = {};  // In this step.
  };

  void share_parameters();
  void share_state();
  void share_averages();
  void choose_parts();

  // True when the step counter is at 0.
  bool adopt_state(Parameter& parameter, const Part* part);
  at::Tensor measure(const std::optional<at::Tensor>& inverse_scale);
  void take_gradients(const std::optional<at::Tensor>& inverse_scale,
                      const at::Tensor& norm);
  void update(const at::Tensor& found_inf);
  void average();

  World world_;
  Optimizer& optimizer_;
  std::vector<Ema>& averages_;
  double max_norm_;
  std::vector<Parameter> parameters_;
  GradientBuckets buckets_;
  std::vector<Part> parts_;
};

}  // namespace lockstep::parallel
