// The recipe protein learns, alike on any number of processes, and predicts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"
#include "lockstep/datasets/proteins/cache_file.h"
#include "lockstep/datasets/proteins/generated.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

const Words kSmall = {"--pdb_path=builtin:protein",
                      "--hidden_dim=32",
                      "--num_encoder_layers=2",
                      "--num_decoder_layers=2",
                      "--num_heads=4",
                      "--k_neighbors=8",
                      "--learning_rate=3e-3",
                      "--log_every=1",
                      "--workers=1",
                      "--no_tensorboard"};

// What is next to a hidden fragment, and the backbone, tell what it is. To say
// the most frequent one gives 0.37.
TEST(ProteinTraining, RecoversHiddenFragments) {
  const TempDir temp;
  const Training training{
      .recipe = "protein",
      .folder = temp.path(),
      .flags = {"--pdb_path=builtin:protein", "--hidden_dim=64",
                "--num_encoder_layers=1", "--num_decoder_layers=1",
                "--num_heads=4", "--k_neighbors=4", "--learning_rate=4e-3",
                "--warmup_steps=100", "--mask_ratio=0.2", "--dropout=0",
                "--batch_size=4", "--n_steps=1600", "--val_every=1600",
                "--workers=1", "--no_tensorboard"}};
  ProcessOptions options = process_options(training);
  const auto result = run(command_of(training), options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto fragment = metric(temp.path(), "val/fragment_loss");
  const auto torsion = metric(temp.path(), "val/torsion_loss");
  ASSERT_FALSE(fragment.empty());
  EXPECT_NEAR(metric(temp.path(), "val/loss").back(),
              fragment.back() + torsion.back(), 1e-9);
  EXPECT_GT(metric(temp.path(), "val/recovery").back(), 0.6);
  EXPECT_GT(metric(temp.path(), "val/torsion_near").back(), 0.75);
}

TEST(ProteinTraining, OneAndTwoProcessesHaveTheSameLosses) {
  const TempDir temp;
  for (const int world : {1, 2}) {
    run_well({.recipe = "protein",
              .world = world,
              .folder = temp.path() / std::to_string(world),
              .flags = kSmall + Words{"--global_batch_size=8", "--n_steps=10",
                                      "--dropout=0", "--val_every=10"}});
  }
  const auto one = temp.path() / "1";
  const auto two = temp.path() / "2";
  for (const std::string name :
       {"train/loss", "train/fragment_loss", "train/torsion_loss", "val/loss",
        "val/fragment_loss", "val/torsion_loss", "val/recovery",
        "val/torsion_acc"}) {
    SCOPED_TRACE(name);
    const auto alone = metric(one, name);
    EXPECT_EQ(alone.size(), name.starts_with("train") ? 10U : 1U);
    expect_close(metric(two, name), alone, 1e-5);
  }
}

TEST(ProteinTraining, ResumesToTheBit) {
  const TempDir temp;
  const auto train = [&](const std::string& folder, const Words& more) {
    run_well({.recipe = "protein",
              .folder = temp.path() / folder,
              .flags = kSmall + more});
  };
  train("whole", {"--epochs=2", "--limit_train_batches=5"});
  train("stopped", {"--epochs=1", "--limit_train_batches=5"});
  train("stopped",
        {"--epochs=2", "--limit_train_batches=5", "--resume=latest"});
  const std::string file = "checkpoint_epoch_2.pt";
  const Tree whole = load_checkpoint(temp.path() / "whole" / file);
  const Tree resumed = load_checkpoint(temp.path() / "stopped" / file);
  for (const std::string key :
       {"epoch", "encoder_state_dict", "decoder_state_dict",
        "optimizer_state_dict", "scheduler_state_dict", "loss", "train_losses",
        "val_losses"}) {
    expect_equal(resumed.at(key).value(), whole.at(key).value(), key);
  }
}

TEST(ProteinTraining, EvaluatesAndPredictsStructures) {
  const TempDir temp;
  const auto folder = temp.path() / "run";
  run_well({.recipe = "protein",
            .folder = folder,
            .flags = kSmall + Words{"--n_steps=3", "--val_every=3"}});
  const std::string checkpoint = (folder / "best_model.pt").string();
  const auto command = [&](const Words& words) {
    const auto result = run(Words{WORKER_PROGRAM} + words +
                                Words{"--checkpoint", checkpoint, "--save_dir",
                                      folder.string(), "--device=cpu"},
                            {.environment = {{"OMP_NUM_THREADS", "1"}}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  command({"eval", "protein"});
  const std::string results = base::read_file(folder / "test_results.txt");
  for (const std::string name : {"loss", "recovery", "torsion_near"}) {
    expect_in(results, "\n" + name + ": ");
  }
  const proteins::GeneratedChainConfig chains = {.seed = 7};
  const auto inputs = temp.path() / "inputs";
  std::filesystem::create_directories(inputs);
  std::vector<proteins::Protein> proteins;
  for (const int64_t i : {0, 1, 2}) {
    proteins.push_back(proteins::make_protein(
        proteins::generated_structure(chains, i), "chain.pdb"));
    proteins::write_protein_file(inputs / fmt::format("chain{}.pt", i),
                                 proteins.back());
  }
  command(
      {"sample", "protein", "--pdb", inputs.string(), "--num_iterations=3"});
  for (size_t i = 0; i < proteins.size(); ++i) {
    const auto base = folder / "sampled_seed_0" / fmt::format("chain{}", i);
    const auto summary =
        nlohmann::json::parse(base::read_file(base.string() + ".json"));
    const auto num_fragments = proteins[i].fragments.size();
    EXPECT_EQ(summary["residues"], proteins[i].residue_types.size());
    EXPECT_EQ(summary["fragments"], num_fragments);
    EXPECT_GE(summary["recovery"].get<double>(), 0);
    EXPECT_EQ(summary["torsions"], proteins[i].torsion_bins.size());
    const auto table = base::read_file(base.string() + ".tsv");
    EXPECT_EQ(std::ranges::count(table, '\n'), num_fragments + 1);
  }
}

}  // namespace
}  // namespace lockstep::testing
