// Exponential moving averages of parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {

struct EmaConfig {
  double decay = 0.9999;
  // The decay of update n = 1, 2, ... is min(decay, (1+n) / (10+n)), so that
  // the start is soon forgotten (what LitEma does).
  bool warmup = false;
  // The first so many updates copy the parameters instead of averaging.
  int64_t update_after = 0;
};

struct EmaState {
  std::vector<at::Tensor> averages = {};
  int64_t num_updates = 0;
};

// Starts with the values that the parameters have when it is made. Several may
// follow the same parameters. Equal to Python's AveragedModel with
// get_ema_multi_avg_fn, bit for bit. Tensors of integers (counters of buffers)
// are copied, not averaged. Not thread-safe; never waits for the device.
class LOCKSTEP_EXPORT Ema {
 public:
  explicit Ema(std::vector<at::Tensor> parameters, EmaConfig config = {});

  // Once after each step of the optimizer.
  void update();

  // In the order of the parameters, with their devices and types.
  const std::vector<at::Tensor>& averages() const { return averages_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  int64_t num_updates() const { return num_updates_; }
  double decay() const { return config_.decay; }

  // The tensors are the object's own: copy them before the next update.
  EmaState state() const;
  // Copies. Throws ConfigError when the state is of other parameters; then
  // nothing has changed.
  void load(const EmaState& state);

 private:
  // Tensors that one kernel can average.
  struct List {
    std::vector<at::Tensor> averages;
    std::vector<at::Tensor> parameters;
  };
  double weight() const;

  EmaConfig config_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> averages_;
  std::vector<List> lists_;
  int64_t num_updates_ = 0;
};

// While it lives the parameters hold the averages; at its end they have their
// own bits again. Values are copied and storage stays, so that modules,
// optimizers and DDP keep what they refer to; it needs memory for one more copy
// of the parameters. Scopes nest. Neither step nor update inside.
class LOCKSTEP_EXPORT EmaScope {
 public:
  explicit EmaScope(const Ema& ema);
  ~EmaScope();
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> saved_;
};

}  // namespace lockstep
