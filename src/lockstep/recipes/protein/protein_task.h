// The task of the recipe protein.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/models/protein/losses.h"
#include "lockstep/models/protein/model.h"
#include "lockstep/prediction.h"
#include "lockstep/recipes/protein/protein.h"
#include "lockstep/reporting.h"
#include "lockstep/task.h"

namespace lockstep::proteins {
class ProteinFiles;
}  // namespace lockstep::proteins

namespace lockstep::recipes {

// Has either data sets or inputs.
struct ProteinTaskData {
  DataSets sets = {};
  std::string text = {};  // Logged at the start of a run.
  std::shared_ptr<const proteins::ProteinFiles> inputs = {};  // To predict.
};

class ProteinTask final : public Task, public Prediction, public Reporting {
 public:
  ProteinTask(const ProteinSettings& settings, ProteinTaskData data);

  TaskInfo info() const override;
  DataSets data() const override { return data_.sets; }
  std::shared_ptr<torch::nn::Module> model() const override { return model_; }
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;

  std::vector<OutputFile> report(const Metrics& metrics,
                                 const MetricCounts& counts) override;

  int64_t num_inputs() const override;
  std::vector<OutputFile> predict(int64_t input) override;

 private:
  struct Guess;

  at::Tensor scored_bins(const at::Tensor& bins) const;
  Guess guess(const Batch& batch, SampleRandom& random);

  ProteinSettings settings_;
  ProteinTaskData data_;
  std::vector<std::string> input_names_;  // Unique.
  std::shared_ptr<protein::ProteinModel> model_;
};

}  // namespace lockstep::recipes
