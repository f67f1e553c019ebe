// Draws samples while training, and records them.
#pragma once

#include <optional>
#include <vector>

#include "lockstep/engine/callback.h"
#include "lockstep/engine/evaluation.h"

namespace lockstep::engine {

struct SamplingCallbackConfig {
  std::optional<int64_t> every =
      {};  // Steps; also after the last. Unset: never.
  int64_t batch_size = 1;
  uint64_t seed = 0;
  bool is_dry_run = false;  // One item per rank; nothing is recorded.
};

class SamplingCallback final : public Callback {
 public:
  SamplingCallback(Sampling& sampling, const SamplingCallbackConfig& config);

  void after_step(TrainLoop& loop, const Step& step) override;
  bool due(const TrainLoop& loop) const override;
  bool run(TrainLoop& loop) override;

 private:
  bool sample_with(TrainLoop& loop, std::optional<int64_t> average);
  static void record(TrainLoop& loop, const std::vector<OutputFile>& files);

  Sampling& sampling_;
  SamplingCallbackConfig config_;
};

}  // namespace lockstep::engine
