#include "lockstep/recipes/protein/protein.h"

#include <fmt/format.h>

#include "lockstep/datasets/proteins/open_sets.h"
#include "lockstep/error.h"
#include "lockstep/recipes/protein/protein_task.h"

namespace lockstep::recipes {
namespace {

void set_protein_defaults(TrainConfig& common) {
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

ProteinTaskData open_protein_data(const TrainConfig& common,
                                  const ProteinSettings& settings,
                                  Purpose purpose) {
  const proteins::ProteinSets sets =
      proteins::open_protein_sets({.pdb_path = common.data_path,
                                   .cache_dir = settings.cache_dir,
                                   .val_split = settings.val_split,
                                   .seed = static_cast<uint64_t>(common.seed),
                                   .max_residues = settings.max_residues});
  ProteinTaskData data{
      .sets = {.train = sets.train, .validation = sets.validation},
      .text = fmt::format(": {} to train, {} to validate", sets.train->size(),
                          sets.validation ? sets.validation->size() : 0)};
  for (const std::string& note : sets.notes) data.text += "\n" + note;
  if (purpose != Purpose::kEval || settings.split == "val") return data;
  if (!sets.test) {
    throw ConfigError(fmt::format(
        "--split test: there is no test.txt in {}: `lockstep prepare protein` "
        "makes one",
        common.data_path));
  }
  data.sets.validation = sets.test;
  return data;
}

ProteinTaskData open_protein_inputs(const ProteinSettings& settings) {
  if (!settings.pdb) {
    throw ConfigError(
        "--pdb is missing: the structure, or the folder of them, whose side "
        "chains to predict");
  }
  return {.inputs = proteins::open_structures(*settings.pdb)};
}

}  // namespace

void ProteinRecipe::describe(Settings& settings) {
  set_protein_defaults(settings.common);
  settings.files.checkpoint = "checkpoint_epoch_{epoch}.pt";
  settings.checkpoint = {
      .model = {{.key = "encoder_state_dict", .prefix = "encoder."},
                {.key = "decoder_state_dict", .prefix = "decoder."}},
      .step = "",
      .loss = "loss",
      .train_losses = "train_losses",
      .val_losses = "val_losses"};
  Options& options = settings.options;
  options.add_alias("data_path", "pdb_path");
  options.show_default("data_path", "none: it must be given");
  const std::string group = "Protein";
  const OptionDetails size = {.minimum = 1, .group = group};
  protein::ProteinConfig& model = settings_.model;
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
              "nearest neighbours per residue in the graph", size);
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

std::unique_ptr<Task> ProteinRecipe::build(const Settings& settings,
                                           Purpose purpose) {
  protein::check_protein_config(settings_.model);
  return std::make_unique<ProteinTask>(
      settings_, purpose == Purpose::kSample
                     ? open_protein_inputs(settings_)
                     : open_protein_data(settings.common, settings_, purpose));
}

void ProteinRecipe::describe_preparation(Options& options) {
  proteins::describe_prepare_flags(options, preparation_);
}

std::string ProteinRecipe::prepare(const Arguments& arguments,
                                   const Progress& progress) {
  return proteins::prepare_protein(arguments, progress);
}

}  // namespace lockstep::recipes
