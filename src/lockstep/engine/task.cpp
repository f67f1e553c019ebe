#include "lockstep/task.h"

#include <torch/nn/module.h>

namespace lockstep {

std::vector<ParameterGroup> Task::parameter_groups() const {
  ParameterGroup group{.name = "all"};
  for (const at::Tensor& parameter : model()->parameters()) {
    if (parameter.requires_grad()) group.parameters.push_back(parameter);
  }
  return {group};
}

void Task::evaluate(const Batch& batch, SampleRandom& random,
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

Metrics Task::derive(const MetricCounts& /*counts*/) const { return {}; }

}  // namespace lockstep
