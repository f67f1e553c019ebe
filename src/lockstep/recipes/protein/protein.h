// The recipe protein: side chains from backbones, by hidden fragments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/models/protein/losses.h"
#include "lockstep/models/protein/masking.h"
#include "lockstep/models/protein/model.h"
#include "lockstep/recipe.h"

namespace lockstep {

class ProteinFiles;
struct ProteinSets;

struct ProteinSettings {
  ProteinConfig model = {};
  MaskingConfig masking = {};
  std::string cache_dir = {};
  double val_split = 0.1;
  int64_t max_residues = 2048;
  std::string split = "val";            // What is evaluated.
  std::optional<std::string> pdb = {};  // What is predicted.
  int64_t num_iterations = 10;
};

class ProteinRecipe final : public Recipe {
 public:
  void describe(Options& options, TrainConfig& common) override;
  TaskInfo facts() const override;
  DataSets open_data(const TrainConfig& common) override;
  DataSets open_eval_data(const TrainConfig& common) override;
  void prepare_sampling(const TrainConfig& common) override;
  std::shared_ptr<torch::nn::Module> make_model() override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;
  std::vector<OutputFile> result_files(const Metrics& metrics) override;
  std::vector<OutputFile> predict(int64_t input) override;
  std::string prepare(const std::vector<std::string>& arguments,
                      const ShowProgress& progress) override;

 private:
  struct Guess;

  ProteinSets open_sets(const TrainConfig& common);
  at::Tensor scored_bins(const at::Tensor& bins) const;
  Guess guess(const Batch& batch, SampleRandom& random);

  ProteinSettings settings_;
  std::string data_text_;  // About the data, for the start of a run.
  std::shared_ptr<const ProteinFiles> inputs_;
  std::vector<std::string> input_names_;  // Each once.
  std::shared_ptr<ProteinModel> model_;
};

}  // namespace lockstep
