// Ends a training that no longer makes progress.
#pragma once

#include <optional>

#include "lockstep/engine/callback.h"

namespace lockstep::engine {

struct EarlyStoppingConfig {
  // Observations without progress before training ends; unset: no limit.
  std::optional<int64_t> patience = {};
  double min_delta = 0;  // Smaller improvements are not progress.
};

class EarlyStoppingCallback final : public Callback {
 public:
  explicit EarlyStoppingCallback(const EarlyStoppingConfig& config)
      : config_(config) {}

  void begin(TrainLoop& loop) override;
  void observe(TrainLoop& loop, const Observation& observation) override;

 private:
  bool is_over(const TrainLoop& loop) const;

  EarlyStoppingConfig config_;
};

}  // namespace lockstep::engine
