#include "lockstep/engine/evaluation.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/divide.h"
#include "lockstep/base/status.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/loader.h"
#include "lockstep/random.h"

namespace lockstep::engine {
namespace {

// Not the number of any training epoch: sampling has its own draws.
constexpr int64_t kSamplingEpoch = -2;

// The largest number of batches of any rank, equal on all ranks.
int64_t most_batches(const Dataset& data, const World& world,
                     const EvaluationConfig& config) {
  const int64_t all = base::divide_up(
      base::divide_up(data.size(), world.size()), config.batch_size);
  if (!config.limit_batches) return all;
  const double limit = *config.limit_batches;
  return std::min(all, limit < 1 ? static_cast<int64_t>(std::ceil(
                                       limit * static_cast<double>(all)))
                                 : static_cast<int64_t>(limit));
}

// Rank r's k-th row is item k * size + r.
at::Tensor in_order(const std::vector<at::Tensor>& of_ranks,
                    int64_t num_items) {
  return torch::stack(of_ranks, 1).flatten(0, 1).slice(0, 0, num_items);
}

}  // namespace

std::optional<Evaluation> evaluate(Task& task, Learner& learner,
                                   const std::shared_ptr<const Dataset>& data,
                                   const World& world,
                                   const EvaluationConfig& config,
                                   const GoOn& go_on) {
  const Learner::Inference inference(learner);
  const Loader loader(data, world,
                      {.batch_size = config.batch_size,
                       .workers = config.workers,
                       .seed = config.seed,
                       .shuffle = false,
                       .uneven = Uneven::kExact});
  const int64_t total = most_batches(*data, world, config);
  MetricSums sums;
  Batches batches = loader.epoch(0);
  for (int64_t done = 0; done < total; ++done) {
    world.status().set_phase(base::Phase::kEvaluating);
    if (!go_on(done, total)) return std::nullopt;
    const auto batch = batches.next();
    if (!batch) continue;
    SampleRandom random(batch->seeds);
    task.evaluate(learner.prepared(*batch), random, sums);
  }
  Evaluation result{.metrics = sums.result(world),
                    .counts = sums.counts(world)};
  Metrics derived = task.derive(result.counts);
  for (const auto& [name, value] : derived) {
    if (find_metric(result.metrics, name) == nullptr) continue;
    throw Error(fmt::format(
        "derive() gives '{}', which evaluate() has added already: choose "
        "another name",
        name));
  }
  for (auto& metric : derived) result.metrics.push_back(std::move(metric));
  return result;
}

SampleRandom item_draws(const std::vector<int64_t>& items, uint64_t seed,
                        c10::Device device) {
  std::vector<int64_t> seeds;
  for (const int64_t item : items) {
    seeds.push_back(
        static_cast<int64_t>(sample_seed(seed, kSamplingEpoch, item)));
  }
  return SampleRandom(torch::tensor(seeds, torch::kLong).to(device));
}

bool make_own_items(const World& world, const SamplingConfig& config,
                    const MakeItems& make, const GoOn& go_on) {
  const int64_t num_own = base::divide_up(config.num_items, world.size());
  const int64_t total = base::divide_up(num_own, config.batch_size);
  for (int64_t done = 0; done < total; ++done) {
    world.status().set_phase(base::Phase::kSampling);
    if (!go_on(done, total)) return false;
    std::vector<int64_t> items;
    const int64_t end = std::min((done + 1) * config.batch_size, num_own);
    for (int64_t k = done * config.batch_size; k < end; ++k) {
      items.push_back(k * world.size() + world.rank());
    }
    SampleRandom random = item_draws(items, config.seed, world.device());
    std::optional<EmaScope> scope;
    if (config.average != nullptr) scope.emplace(*config.average);
    make(items, random);
  }
  return true;
}

at::Tensor sample_rows(Sampling& sampling, std::span<const int64_t> items,
                       SampleRandom& random) {
  at::Tensor rows = sampling.sample(items, random);
  const int64_t count = rows.defined() && rows.dim() > 0 ? rows.size(0) : 0;
  if (count != static_cast<int64_t>(items.size())) {
    throw Error(fmt::format("sample() returned {} rows for {} items", count,
                            items.size()));
  }
  return rows;
}

std::optional<at::Tensor> sample_items(Sampling& sampling, Learner& learner,
                                       const World& world,
                                       const SamplingConfig& config,
                                       const GoOn& go_on) {
  const Learner::Inference inference(learner);
  std::vector<at::Tensor> parts;
  const auto make = [&](const std::vector<int64_t>& items,
                        SampleRandom& random) {
    parts.push_back(sample_rows(sampling, items, random));
  };
  if (!make_own_items(world, config, make, go_on)) return std::nullopt;
  const auto of_ranks = world.all_gather(torch::cat(parts).contiguous());
  if (!world.is_main()) return at::Tensor();
  return in_order(of_ranks, config.num_items).to(at::kCPU);
}

std::vector<OutputFile> render_items(Sampling& sampling,
                                     const at::Tensor& items,
                                     std::optional<int64_t> average) {
  std::string weights;
  if (average) weights = "_ema";
  if (average.value_or(0) > 0) weights += std::to_string(*average + 1);
  std::vector<OutputFile> files = sampling.render(items);
  for (OutputFile& file : files) {
    file.name = base::replace_all(file.name, "{weights}", weights);
    file.title = base::replace_all(file.title, "{weights}", weights);
  }
  return files;
}

}  // namespace lockstep::engine
