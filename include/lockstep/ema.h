// Exponential moving averages of parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {
namespace optim {
class FusedUpdate;
}  // namespace optim
namespace parallel {
class ShardedUpdate;
}  // namespace parallel

struct EmaConfig {
  double decay = 0.9999;
  // The decay of update n = 1, 2, ... is min(decay, (1+n) / (10+n)), so that
  // initial values decay quickly (as LitEma does).
  bool warmup = false;
  // Number of first updates that copy the parameters instead of averaging.
  int64_t update_after = 0;
};

struct EmaState {
  std::vector<at::Tensor> averages = {};
  int64_t num_updates = 0;
};

// Starts with the parameters' current values. Several may average the same
// parameters. Equal to Python's AveragedModel with get_ema_multi_avg_fn, bit
// for bit. Tensors of integers (counters of buffers) are copied, not averaged.
// Not thread-safe; never waits for the device.
class LOCKSTEP_EXPORT Ema {
 public:
  explicit Ema(std::vector<at::Tensor> parameters, EmaConfig config = {});

  // Call it once after each optimizer step.
  void update();

  // In the order of the parameters, with their devices and types.
  const std::vector<at::Tensor>& averages() const { return averages_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  int64_t num_updates() const { return num_updates_; }
  double decay() const { return config_.decay; }

  // The tensors are the object's own: copy them before the next update.
  EmaState state() const;
  // Copies. Throws ConfigError if the state belongs to other parameters; then
  // nothing has changed.
  void load(const EmaState& state);

 private:
  friend class optim::FusedUpdate;
  friend class parallel::ShardedUpdate;
  friend class EmaScope;
  // Tensors that one kernel can average.
  struct List {
    std::vector<at::Tensor> averages;
    std::vector<at::Tensor> parameters;
  };
  // Counts an update; returns how far it goes towards the parameters.
  double count_update();
  static void average(const List& list, double weight);

  EmaConfig config_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> averages_;
  std::vector<List> lists_;
  int64_t num_updates_ = 0;
  // Other ranks read and write the same parameters.
  bool is_shared_ = false;
};

// Within its scope the parameters hold the averages; its end restores their
// exact values. Values are copied in place, so modules, optimizers and DDP keep
// their references; it needs memory for another copy of the parameters. Scopes
// nest. Do not call step() or update() inside. Where ranks share one copy of
// the parameters (--shard_optimizer), nothing is copied: this rank's tensors
// refer to the averages until the end.
class LOCKSTEP_EXPORT EmaScope {
 public:
  explicit EmaScope(const Ema& ema);
  ~EmaScope();
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> saved_;
  bool is_shared_;
};

}  // namespace lockstep
