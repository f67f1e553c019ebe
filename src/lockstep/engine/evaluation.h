// Validation and sampling, spread over all ranks.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "lockstep/engine/learner.h"
#include "lockstep/sampling.h"
#include "lockstep/task.h"
#include "lockstep/world.h"

namespace lockstep::engine {

// Called between batches, equally often on every rank, with the number of
// batches done and the total. Returns false to end the work.
using GoOn = std::function<bool(int64_t done, int64_t total)>;

struct EvaluationConfig {
  int64_t batch_size = 1;
  int workers = 0;
  uint64_t seed = 0;
  // Batches per process; below 1: a fraction of them. Unset: all.
  std::optional<double> limit_batches = {};
};

// Equal on every rank.
struct Evaluation {
  Metrics metrics = {};
  MetricCounts counts = {};
};

// Evaluates every sample once, with the same draws each time. No value if
// `go_on` returned false. Throws Error if derive() gives a metric that
// evaluate() has added. A collective.
std::optional<Evaluation> evaluate(Task& task, Learner& learner,
                                   const std::shared_ptr<const Dataset>& data,
                                   const World& world,
                                   const EvaluationConfig& config,
                                   const GoOn& go_on);

// Random draws of numbered items, independent of the rank that makes them.
SampleRandom item_draws(const std::vector<int64_t>& items, uint64_t seed,
                        c10::Device device);

struct SamplingConfig {
  int64_t num_items = 1;
  int64_t batch_size = 1;
  uint64_t seed = 0;
  // Moving average to sample with instead of the weights. The weights are
  // restored between batches, so that `go_on` may save them.
  const Ema* average = nullptr;
};

// Makes this rank's items, a batch at a time. Every rank makes equally many, so
// the last numbers may be beyond num_items. False if `go_on` returned false.
using MakeItems =
    std::function<void(const std::vector<int64_t>&, SampleRandom&)>;
bool make_own_items(const World& world, const SamplingConfig& config,
                    const MakeItems& make, const GoOn& go_on);

// Samples one row per item. Throws Error if sample() returns another number.
at::Tensor sample_rows(Sampling& sampling, std::span<const int64_t> items,
                       SampleRandom& random);

// All items in order, on rank 0; an undefined tensor on the others. Each rank
// makes its part. No value if `go_on` returned false. A collective.
std::optional<at::Tensor> sample_items(Sampling& sampling, Learner& learner,
                                       const World& world,
                                       const SamplingConfig& config,
                                       const GoOn& go_on);

// Renders items to files, named for the weights or for the moving average of
// this index.
std::vector<OutputFile> render_items(Sampling& sampling,
                                     const at::Tensor& items,
                                     std::optional<int64_t> average);

}  // namespace lockstep::engine
