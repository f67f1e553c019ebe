#include "lockstep/recipes/protein/protein.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/datasets/proteins/open_sets.h"
#include "lockstep/datasets/proteins/prepare.h"
#include "lockstep/error.h"
#include "lockstep/models/protein/inference.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"
#include "lockstep/recipes/protein/prediction.h"

namespace lockstep {
namespace {

void set_defaults(TrainConfig& common) {
  common.save_dir = "checkpoints";
  common.epochs = 50;
  common.batch_size = 4;
  common.workers = 4;
  common.optimization.lr = 1e-4;
  common.optimization.weight_decay = 1e-5;
  common.optimization.lr_schedule = "plateau";
  common.optimization.lr_gamma = 0.5;
  common.optimization.plateau_patience = 5;
  common.optimization.max_grad_norm = 1;
  common.save_every_epochs = 10;
  common.keep_last = 0;
}

}  // namespace

void ProteinRecipe::describe(Options& options, TrainConfig& common) {
  set_defaults(common);
  options.add_alias("data_path", "pdb_path");
  options.show_default("data_path", "none: it must be given");
  const std::string group = "Protein";
  const OptionDetails size = {.minimum = 1, .group = group};
  ProteinConfig& model = settings_.model;
  options.add("cache_dir", settings_.cache_dir,
              "folder that keeps structures as .pt files once they were read; "
              "the same as pdb_path: its .pt files are the data",
              {.group = group});
  options.add("val_split", settings_.val_split,
              "part of the proteins that is held back to validate, where no "
              "train.txt and val.txt say which",
              {.minimum = 0, .maximum = 0.9, .group = group});
  options.add("max_residues", settings_.max_residues,
              "longer proteins are left out", size);
  options.add("hidden_dim", model.width, "width of a residue and a fragment",
              size);
  options.add("num_encoder_layers", model.encoder_depth,
              "layers of the graph network", size);
  options.add("num_decoder_layers", model.decoder_depth,
              "layers of the transformer", size);
  options.add("num_heads", model.num_heads, "heads of attention", size);
  options.add("k_neighbors", model.num_neighbours,
              "nearest residues that one talks to", size);
  options.add("num_torsion_bins", model.num_torsion_bins,
              "bins of chi1 around the circle; must divide 72", size);
  options.add("dropout", model.dropout, "dropout of the model",
              {.minimum = 0, .maximum = 0.99, .group = group});
  options.add("mask_ratio", settings_.masking.ratio,
              "part of the fragments that is hidden, with random; at least one",
              {.minimum = 0, .maximum = 1, .group = group});
  options.add("masking_strategy", settings_.masking.strategy,
              "which fragments are hidden: random ones, or 3 blocks of 5",
              {.choices = {"random", "block"}, .group = group});
  options.add("num_iterations", settings_.num_iterations,
              "steps of a prediction, from all fragments hidden to none", size);
  options.add("split", settings_.split,
              "what `lockstep eval` takes: the validation data, or those of "
              "test.txt",
              {.choices = {"val", "test"}, .group = group, .once = true});
  options.add("pdb", settings_.pdb,
              "structure (PDB, mmCIF or .pt), or a folder of them, whose side "
              "chains `lockstep sample` predicts",
              {.group = group, .once = true});
}

TaskInfo ProteinRecipe::facts() const {
  return {
      .name = "protein",
      .summary = "side chains from backbones: hidden fragments, chi1",
      .subject = fmt::format("side chains of proteins{}", data_text_),
      .files = {.checkpoint = "checkpoint_epoch_{epoch}.pt"},
      .keys = {.model = {{.key = "encoder_state_dict", .prefix = "encoder."},
                         {.key = "decoder_state_dict", .prefix = "decoder."}},
               .step = "",
               .loss = "loss",
               .train_losses = "train_losses",
               .val_losses = "val_losses"},
      .memory_remedies = {"--batch_size 2", "--max_residues 512",
                          "--hidden_dim 128"},
      .shapes = BatchShapes::kDynamic,
      .num_inputs = inputs_ ? inputs_->size() : 0};
}

ProteinSets ProteinRecipe::open_sets(const TrainConfig& common) {
  check_protein_config(settings_.model);
  ProteinSets sets =
      open_protein_sets({.pdb_path = common.data_path,
                         .cache_dir = settings_.cache_dir,
                         .val_split = settings_.val_split,
                         .seed = static_cast<uint64_t>(common.seed),
                         .max_residues = settings_.max_residues});
  data_text_ = fmt::format(": {} to train, {} to validate", sets.train->size(),
                           sets.validation ? sets.validation->size() : 0);
  for (const std::string& note : sets.notes) data_text_ += "\n" + note;
  return sets;
}

DataSets ProteinRecipe::open_data(const TrainConfig& common) {
  const ProteinSets sets = open_sets(common);
  return {.train = sets.train, .validation = sets.validation};
}

DataSets ProteinRecipe::open_eval_data(const TrainConfig& common) {
  if (settings_.split == "val") return open_data(common);
  const ProteinSets sets = open_sets(common);
  if (!sets.test) {
    throw ConfigError(fmt::format(
        "--split test: there is no test.txt in {}: `lockstep prepare protein` "
        "makes one",
        common.data_path));
  }
  return {.train = sets.train, .validation = sets.test};
}

void ProteinRecipe::prepare_sampling(const TrainConfig& /*common*/) {
  check_protein_config(settings_.model);
  if (!settings_.pdb) {
    throw ConfigError(
        "--pdb is missing: the structure, or the folder of them, whose side "
        "chains to predict");
  }
  inputs_ = open_structures(*settings_.pdb);
  for (int64_t i = 0; i < inputs_->size(); ++i) {
    input_names_.push_back(inputs_->name(i));
  }
  number_equal_names(input_names_);
}

std::shared_ptr<torch::nn::Module> ProteinRecipe::make_model() {
  model_ = std::make_shared<ProteinModel>(settings_.model);
  return model_;
}

// The data have 72 bins; fewer are made by joining neighbours.
at::Tensor ProteinRecipe::scored_bins(const at::Tensor& bins) const {
  if (settings_.model.num_torsion_bins == kNumTorsionBins) return bins;
  // Towards minus infinity: what is not scored stays -1.
  return bins.div(kNumTorsionBins / settings_.model.num_torsion_bins, "floor");
}

// A batch with hidden fragments, and what the model makes of it.
struct ProteinRecipe::Guess {
  FragmentLogits logits = {};
  ProteinTargets targets = {};
  at::Tensor num_hidden = {};
  at::Tensor num_torsions = {};
};

ProteinRecipe::Guess ProteinRecipe::guess(const Batch& batch,
                                          SampleRandom& random) {
  ProteinInput input = {.coords = batch[0].to(model_->dtype()),
                        .lengths = batch[1],
                        .fragments = batch[2]};
  Guess made = {
      .targets = {.fragments = input.fragments,
                  .is_hidden = draw_hidden(input.fragments.ne(kPadFragment),
                                           settings_.masking, random),
                  .torsions = scored_bins(batch[3])}};
  made.num_hidden = made.targets.is_hidden.sum();
  made.num_torsions = made.targets.torsions.ge(0).sum();
  input.fragments =
      input.fragments.masked_fill(made.targets.is_hidden, kMaskFragment);
  made.logits = model_->forward(input);
  return made;
}

Loss ProteinRecipe::loss(const Batch& batch, SampleRandom& random) {
  const Guess made = guess(batch, random);
  const ProteinLosses losses = protein_losses(made.logits, made.targets);
  return {.terms = {{.name = "fragment_loss",
                     .sum = losses.fragments.sum(),
                     .normaliser = made.num_hidden},
                    {.name = "torsion_loss",
                     .sum = losses.torsions.sum(),
                     .normaliser = made.num_torsions}}};
}

void ProteinRecipe::evaluate(const Batch& batch, SampleRandom& random,
                             MetricSums& sums) {
  const Guess made = guess(batch, random);
  const ProteinLosses losses = protein_losses(made.logits, made.targets);
  sums.add_term({.name = "fragment_loss",
                 .sum = losses.fragments,
                 .normaliser = made.num_hidden});
  sums.add_term({.name = "torsion_loss",
                 .sum = losses.torsions,
                 .normaliser = made.num_torsions});
  const ProteinHits hits = protein_hits(made.logits, made.targets);
  sums.add("recovery", hits.fragments, made.num_hidden);
  sums.add("torsion_acc", hits.torsions, made.num_torsions);
  sums.add("torsion_near", hits.near_torsions, made.num_torsions);
}

std::vector<OutputFile> ProteinRecipe::result_files(const Metrics& metrics) {
  std::string text = fmt::format("split: {}\n", settings_.split);
  for (const auto& [name, value] : metrics) {
    text += fmt::format("{}: {:.6f}\n", name, value);
  }
  return {{.name = "test_results.txt", .bytes = text}};
}

std::vector<OutputFile> ProteinRecipe::predict(int64_t input) {
  const torch::NoGradGuard no_grad;
  const KnownProtein known = read_known_protein(inputs_->path(input));
  const Sample batch = inputs_->collate({protein_sample(known.protein)});
  const auto device = model_->parameters().front().device();
  const FragmentGuess guess =
      guess_fragments(*model_,
                      {.coords = batch[0].to(device, model_->dtype()),
                       .lengths = batch[1].to(device),
                       .fragments = batch[2].to(device)},
                      settings_.num_iterations);
  return prediction_files(input_names_.at(static_cast<size_t>(input)), known,
                          {.fragments = guess.fragments[0].cpu(),
                           .probabilities = guess.probabilities[0].cpu(),
                           .torsions = guess.torsions[0].cpu()},
                          settings_.model.num_torsion_bins);
}

std::string ProteinRecipe::prepare(const std::vector<std::string>& arguments,
                                   const ShowProgress& progress) {
  return prepare_protein(arguments, progress);
}

}  // namespace lockstep
