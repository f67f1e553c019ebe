#include "lockstep/recipes/protein/protein_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/datasets/proteins/prediction.h"
#include "lockstep/datasets/proteins/protein_set.h"
#include "lockstep/models/protein/inference.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"

namespace lockstep::recipes {

ProteinTask::ProteinTask(const ProteinSettings& settings, ProteinTaskData data)
    : settings_(settings),
      data_(std::move(data)),
      model_(std::make_shared<protein::ProteinModel>(settings.model)) {
  for (int64_t i = 0; i < num_inputs(); ++i) {
    input_names_.push_back(data_.inputs->name(i));
  }
  base::number_equal_names(input_names_);
}

TaskInfo ProteinTask::info() const {
  return {.subject = "side chains of proteins" + data_.text,
          .memory_remedies = {"--batch_size 2", "--max_residues 512",
                              "--hidden_dim 128"},
          .shapes = BatchShapes::kDynamic};
}

int64_t ProteinTask::num_inputs() const {
  return data_.inputs ? data_.inputs->size() : 0;
}

// The data have 72 bins; neighbours are merged for fewer.
at::Tensor ProteinTask::scored_bins(const at::Tensor& bins) const {
  if (settings_.model.num_torsion_bins == protein::kNumTorsionBins) return bins;
  // Rounds towards minus infinity, so that -1 (not scored) stays -1.
  return bins.div(protein::kNumTorsionBins / settings_.model.num_torsion_bins,
                  "floor");
}

// A batch with masked fragments, and the model's prediction.
struct ProteinTask::Guess {
  protein::FragmentLogits logits = {};
  protein::ProteinTargets targets = {};
  at::Tensor num_hidden = {};
  at::Tensor num_torsions = {};
};

ProteinTask::Guess ProteinTask::guess(const Batch& batch,
                                      SampleRandom& random) {
  protein::ProteinInput input = {.coords = batch[0].to(model_->dtype()),
                                 .lengths = batch[1],
                                 .fragments = batch[2]};
  Guess made = {.targets = {.fragments = input.fragments,
                            .is_hidden = protein::draw_hidden(
                                input.fragments.ne(protein::kPadFragment),
                                settings_.masking, random),
                            .torsions = scored_bins(batch[3])}};
  made.num_hidden = made.targets.is_hidden.sum();
  made.num_torsions = made.targets.torsions.ge(0).sum();
  input.fragments = input.fragments.masked_fill(made.targets.is_hidden,
                                                protein::kMaskFragment);
  made.logits = model_->forward(input);
  return made;
}

Loss ProteinTask::loss(const Batch& batch, SampleRandom& random) {
  const Guess made = guess(batch, random);
  const protein::ProteinLosses losses =
      protein::protein_losses(made.logits, made.targets);
  return {.terms = {{.name = "fragment_loss",
                     .sum = losses.fragments.sum(),
                     .normaliser = made.num_hidden},
                    {.name = "torsion_loss",
                     .sum = losses.torsions.sum(),
                     .normaliser = made.num_torsions}}};
}

void ProteinTask::evaluate(const Batch& batch, SampleRandom& random,
                           MetricSums& sums) {
  const Guess made = guess(batch, random);
  const protein::ProteinLosses losses =
      protein::protein_losses(made.logits, made.targets);
  sums.add_term({.name = "fragment_loss",
                 .sum = losses.fragments,
                 .normaliser = made.num_hidden});
  sums.add_term({.name = "torsion_loss",
                 .sum = losses.torsions,
                 .normaliser = made.num_torsions});
  const protein::ProteinHits hits =
      protein::protein_hits(made.logits, made.targets);
  sums.add("recovery", hits.fragments, made.num_hidden);
  sums.add("torsion_acc", hits.torsions, made.num_torsions);
  sums.add("torsion_near", hits.near_torsions, made.num_torsions);
}

std::vector<OutputFile> ProteinTask::report(const Metrics& metrics,
                                            const MetricCounts& /*counts*/) {
  std::string text = fmt::format("split: {}\n", settings_.split);
  for (const auto& [name, value] : metrics) {
    text += fmt::format("{}: {:.6f}\n", name, value);
  }
  return {{.name = "test_results.txt", .bytes = text}};
}

std::vector<OutputFile> ProteinTask::predict(int64_t input) {
  const torch::NoGradGuard no_grad;
  const proteins::KnownProtein known =
      proteins::read_known_protein(data_.inputs->path(input));
  const Sample batch =
      data_.inputs->collate({proteins::protein_sample(known.protein)});
  const auto device = model_->parameters().front().device();
  const protein::FragmentGuess guess =
      protein::guess_fragments(*model_,
                               {.coords = batch[0].to(device, model_->dtype()),
                                .lengths = batch[1].to(device),
                                .fragments = batch[2].to(device)},
                               settings_.num_iterations);
  return proteins::prediction_files(
      input_names_.at(static_cast<size_t>(input)), known,
      {.fragments = guess.fragments[0].cpu(),
       .probabilities = guess.probabilities[0].cpu(),
       .torsions = guess.torsions[0].cpu()},
      settings_.model.num_torsion_bins);
}

}  // namespace lockstep::recipes
