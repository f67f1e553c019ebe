// Converts the parts of a training to checkpoint trees, in the layout of
// Python's state_dict() where there is one.
#pragma once

#include "lockstep/checkpoint.h"
#include "lockstep/ema.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/optim/grad_scaler.h"
#include "lockstep/optimizer.h"
#include "lockstep/parallel/bucket_layout.h"
#include "lockstep/world.h"

namespace lockstep::run {

// torch.optim's layout: {"state": {i: {...}}, "param_groups": [...]}.
Tree optimizer_tree(const Optimizer& optimizer);
void load_optimizer(Optimizer& optimizer, const TreeView& tree);

// torch.amp.GradScaler's layout.
Tree scaler_tree(const optim::GradScaler& scaler);
void load_scaler(optim::GradScaler& scaler, const TreeView& tree);

// {"num_updates": n, "state_dict": {name: tensor}}.
Tree ema_tree(const Ema& ema, const std::vector<std::string>& names);
void load_ema(Ema& ema, const std::vector<std::string>& names,
              const TreeView& tree);

// torch.optim.lr_scheduler's layout: readable by LambdaLR and similar
// schedulers, or by ReduceLROnPlateau for the plateau schedule.
Tree scheduler_tree(const Optimizer& optimizer, const engine::TrainState& state,
                    double base_lr);

Tree numbers_tree(const std::vector<double>& numbers);

Tree train_state_tree(const engine::TrainState& state);
engine::TrainState read_train_state(const TreeView& tree);

Tree bucket_layout_tree(const BucketLayout& layout);
BucketLayout read_bucket_layout(const TreeView& tree);

// Gathers one tensor per rank, in rank order, on the CPU. A collective.
Tree gathered_tree(const at::Tensor& tensor, const World& world);

// The state of the generator that draws dropout on the CPU.
at::Tensor cpu_generator_state();
void set_cpu_generator_state(const at::Tensor& state);
// The same on the world's GPU.
at::Tensor device_generator_state(const World& world);
void set_device_generator_state(const World& world, const at::Tensor& state);

// The states of torch's generators on every rank, in rank order. A collective.
Tree generators_tree(const World& world);
// Restores this rank's state; the tree must come from the same number of ranks.
void load_generators(const World& world, const TreeView& tree);

}  // namespace lockstep::run
