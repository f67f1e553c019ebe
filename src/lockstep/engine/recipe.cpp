#include "lockstep/recipe.h"

#include <torch/torch.h>

#include "lockstep/base/workers.h"
#include "lockstep/error.h"

namespace lockstep {

void Recipe::resolve_defaults(const Options& /*options*/,
                              TrainConfig& /*common*/) {}

DataSets Recipe::open_eval_data(const TrainConfig& common) {
  return open_data(common);
}

void Recipe::prepare_sampling(const TrainConfig& common) { open_data(common); }

bool Recipe::prepares_by_settings(
    const std::vector<std::string>& /*arguments*/) const {
  return false;
}

CacheProgress Recipe::fill_cache(const Shard& /*share*/) { return {}; }

std::vector<ParameterGroup> Recipe::parameter_groups(torch::nn::Module& model) {
  ParameterGroup group{.name = "all"};
  for (const at::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) group.parameters.push_back(parameter);
  }
  return {group};
}

void Recipe::evaluate(const Batch& batch, SampleRandom& random,
                      MetricSums& sums) {
  const Loss result = loss(batch, random);
  for (const LossTerm& term : result.terms) sums.add_term(term);
  if (!result.terms.empty()) return;
  if (result.normaliser.defined()) {
    sums.add("loss", result.sum, result.normaliser);
  } else {
    sums.add("loss", result.sum, static_cast<double>(batch.size()));
  }
}

Metrics Recipe::derive(const MetricCounts& /*counts*/) { return {}; }

std::vector<OutputFile> Recipe::result_files(const Metrics& /*metrics*/) {
  return {};
}

std::vector<OutputFile> Recipe::predict(int64_t /*input*/) {
  throw ConfigError("the recipe " + facts().name + " takes no inputs");
}

at::Tensor Recipe::sample(std::span<const int64_t> /*items*/,
                          SampleRandom& /*random*/) {
  throw ConfigError("the recipe " + facts().name + " cannot sample");
}

at::Tensor Recipe::generate(std::span<const int64_t> /*items*/,
                            SampleRandom& /*random*/) {
  throw ConfigError("the recipe " + facts().name + " generates no images");
}

std::string Recipe::prepare(const std::vector<std::string>& /*arguments*/,
                            const ShowProgress& /*progress*/) {
  return "the recipe " + facts().name + " has nothing to prepare\n";
}

std::vector<OutputFile> Recipe::render(const at::Tensor& /*items*/) {
  throw ConfigError("the recipe " + facts().name + " cannot sample");
}

}  // namespace lockstep
