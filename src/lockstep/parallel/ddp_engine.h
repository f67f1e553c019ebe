// What DistributedDataParallel does around a forward pass, independent of the
// module's type.
//
// Follows the order of calls of Python's DistributedDataParallel around the
// same c10d::Reducer, so that both give the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/parallel/bucket_layout.h"
#include "lockstep/parallel/gradient_hook.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/tensor/tensor.h"
#include "lockstep/world.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

// Gradient compression.
enum class Compression { kNone, kFp16, kBf16 };

struct DdpConfig {
  // Rank 0's buffers (running statistics) are copied to all ranks before each
  // forward.
  bool broadcast_buffers = true;
  // Search the graph for parameters that take no part in a step. Costs time;
  // needed when the set of used parameters changes between steps or ranks.
  bool find_unused_parameters = false;
  // Promise that every step uses the same parameters in the same way. Not with
  // no_sync().
  bool static_graph = false;
  // Gradients live inside the buckets: no copies, less memory.
  bool gradient_as_bucket_view = true;
  // Unset: buckets of 25 MiB, the first of 1 MiB.
  std::optional<double> bucket_cap_mb = {};
  // Full names of parameters and buffers that are left alone on every rank.
  NameSet ignored = {};
  Compression compression = Compression::kNone;
  // Custom averaging of a bucket, instead of `compression`.
  GradientHook gradient_hook = {};
  // From bucket_layout() of the run that this one continues.
  std::optional<BucketLayout> bucket_layout = {};
};

struct JoinConfig {
  // Divide by the number of ranks at the start, or by those that still have
  // inputs.
  bool divide_by_initial_world_size = true;
  // Throw on every rank as soon as one has no more inputs, instead of going on
  // without it.
  bool throw_on_early_end = false;
};

class DdpEngine {
 public:
  // Checks that all ranks hold the same parameters and gives them rank 0's
  // values. Throws ConfigError for a module that cannot be trained so, or when
  // ranks hold different ones.
  DdpEngine(std::shared_ptr<torch::nn::Module> module, World world,
            DdpConfig config);
  ~DdpEngine();
  DdpEngine(const DdpEngine&) = delete;
  DdpEngine& operator=(const DdpEngine&) = delete;

  void before_forward();
  // May replace the tensors by ones behind the sink node.
  void after_forward(const std::vector<at::Tensor*>& outputs);

  // Throws ConfigError with static_graph, a combination that libtorch 2.11 gets
  // wrong.
  void set_gradient_sync(bool enabled);
  bool gradient_sync() const;

  // Runs `steps`; then stands in for this rank until every rank has finished
  // its own steps.
  void join(const std::function<void()>& steps, const JoinConfig& config);

  // A collective: every rank must call it. Valid between steps.
  BucketLayout bucket_layout();

  const World& world() const { return world_; }

 private:
  struct State;

  void build_reducer(const TrainedParameters& parameters);
  BucketLayout first_layout(const TrainedParameters& parameters) const;
  void register_hook();
  void agree_with_other_ranks();
  void note_memory();
  void sync_module(int from);
  void broadcast_all(const std::vector<at::Tensor>& tensors, int from);
  bool will_sync_buffers() const;
  void run_sink(const std::vector<at::Tensor*>& outputs);
  [[noreturn]] void explain_reducer_error(const std::exception& error) const;

  // join()
  void notify_join();
  void announce_gradient_sync();
  bool peers_sync_gradients();
  int highest_rank_of(bool candidate);
  void shadow_step();
  at::Tensor reduce_flag(double value);

  std::shared_ptr<torch::nn::Module> module_;
  World world_;
  DdpConfig config_;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
