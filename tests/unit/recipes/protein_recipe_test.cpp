#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/datasets/proteins/structure.h"
#include "lockstep/error.h"
#include "lockstep/models/protein/vocabulary.h"
#include "lockstep/prediction.h"
#include "lockstep/recipes/protein/protein.h"
#include "lockstep/world.h"
#include "support/protein_files.h"
#include "support/temp_dir.h"
#include "unit/recipes/built_task.h"

namespace lockstep {
namespace {

using testing::TempDir;
using Words = std::vector<std::string>;

const Words kSmallProtein = {"--pdb_path=builtin:protein",
                             "--hidden_dim=16",
                             "--num_encoder_layers=1",
                             "--num_decoder_layers=1",
                             "--num_heads=2",
                             "--k_neighbors=5",
                             "--dropout=0"};

struct ReadyProtein : testing::BuiltTask<recipes::ProteinRecipe> {
  explicit ReadyProtein(const Words& more = {},
                        Purpose purpose = Purpose::kTrain)
      : BuiltTask(testing::with_flags(kSmallProtein, more), purpose) {
    model->eval();
  }

  std::vector<LossTerm> terms_of(const Batch& made) {
    return loss_of(made).terms;
  }
};

TEST(ProteinRecipe, HasTheDefaultsOfTheGuide) {
  recipes::ProteinRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--pdb_path", "data/cache", "--cache_dir", "data/cache"}, {});
  const TrainConfig& config = line.config();
  EXPECT_EQ(config.data_path, "data/cache");
  EXPECT_EQ(config.save_dir, "checkpoints");
  EXPECT_EQ(config.epochs, 50);
  EXPECT_EQ(config.batch_size, 4);
  EXPECT_EQ(config.workers, 4);
  EXPECT_EQ(config.optimization.optimizer, "adamw");
  EXPECT_EQ(config.optimization.lr, 1e-4);
  EXPECT_EQ(config.optimization.weight_decay, 1e-5);
  EXPECT_EQ(config.optimization.lr_schedule, "plateau");
  EXPECT_EQ(config.optimization.lr_gamma, 0.5);
  EXPECT_EQ(config.optimization.plateau_patience, 5);
  EXPECT_EQ(config.optimization.max_grad_norm, 1);
  EXPECT_EQ(config.optimization.lr_scaling, "none");
  EXPECT_EQ(config.precision, "fp32");
  EXPECT_EQ(config.save_every_epochs, 10);
}

TEST(ProteinRecipe, ALossIsTheSumOfItsSamplesLosses) {
  ReadyProtein ready;
  const auto whole = ready.terms_of(ready.batch({0, 1, 2}));
  const auto first = ready.terms_of(ready.batch({2, 0}));
  const auto second = ready.terms_of(ready.batch({1}));
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_EQ(whole[0].name, "fragment_loss");
  EXPECT_EQ(whole[1].name, "torsion_loss");
  for (size_t i = 0; i < 2; ++i) {
    const double sum = whole[i].sum.item<double>();
    EXPECT_EQ(whole[i].weight, 1);
    EXPECT_NEAR(sum, first[i].sum.item<double>() + second[i].sum.item<double>(),
                1e-4 * sum);
    EXPECT_EQ(whole[i].normaliser.item<int64_t>(),
              first[i].normaliser.item<int64_t>() +
                  second[i].normaliser.item<int64_t>());
  }
}

TEST(ProteinRecipe, EvaluatesRecoveryAndTorsions) {
  ReadyProtein ready;
  const torch::NoGradGuard no_grad;
  for (auto& parameter : ready.model->parameters()) parameter.zero_();
  const Batch batch = ready.batch({0, 1, 2, 3});
  SampleRandom random(batch.seeds);
  MetricSums sums;
  ready.task->evaluate(batch, random, sums);
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  const Metrics metrics = sums.result(world);
  // All are equally likely to it, and the first is PAD.
  EXPECT_NEAR(*find_metric(metrics, "fragment_loss"), std::log(16), 1e-5);
  EXPECT_NEAR(*find_metric(metrics, "torsion_loss"), std::log(72), 1e-5);
  EXPECT_NEAR(*find_metric(metrics, "loss"), std::log(16) + std::log(72), 1e-5);
  EXPECT_EQ(*find_metric(metrics, "recovery"), 0);
  const double part =
      batch[3].eq(0).sum().item<double>() / batch[3].ge(0).sum().item<double>();
  EXPECT_DOUBLE_EQ(*find_metric(metrics, "torsion_acc"), part);
  EXPECT_GE(*find_metric(metrics, "torsion_near"), part);
}

TEST(ProteinRecipe, JoinsBinsOfTorsions) {
  ReadyProtein ready({"--num_torsion_bins=12"});
  ReadyProtein all;
  const Batch batch = ready.batch({0, 1});
  EXPECT_EQ(ready.terms_of(batch)[1].normaliser.item<int64_t>(),
            all.terms_of(batch)[1].normaliser.item<int64_t>());
  EXPECT_THROW(ReadyProtein({"--num_torsion_bins=50"}), ConfigError);
}

TEST(ProteinRecipe, RefusesWhatItCannotDo) {
  EXPECT_THROW(ReadyProtein({}, Purpose::kSample), ConfigError);
  // Generated chains have no list of those to test with.
  EXPECT_THROW(ReadyProtein({"--split=test"}, Purpose::kEval), ConfigError);
  EXPECT_THROW(ReadyProtein({"--pdb=nowhere.pdb"}, Purpose::kSample),
               ConfigError);
}

TEST(ProteinRecipe, PredictsAStructure) {
  const TempDir folder;
  const auto chain = proteins::generated_chain({.seed = 5}, 0);
  auto atoms = testing::atom_lines(chain);
  for (auto& atom : atoms) atom.number += 100;
  const auto path = folder.write("1abc.pdb", testing::pdb_text(atoms));
  ReadyProtein ready({"--pdb=" + path, "--num_iterations=3"}, Purpose::kSample);
  auto& prediction = ready.as<Prediction>();
  EXPECT_EQ(prediction.num_inputs(), 1);
  const auto files = prediction.predict(0);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "1abc.tsv");
  EXPECT_EQ(files[1].name, "1abc.json");
  std::vector<std::vector<std::string>> rows;
  for (const auto& line : base::split(files[0].bytes, '\n')) {
    std::vector<std::string> row;
    for (const auto& cell : base::split(line, '\t')) row.emplace_back(cell);
    rows.push_back(row);
  }
  const proteins::Structure structure = proteins::read_structure(path);
  size_t row = 1;
  for (size_t i = 0; i < structure.residue_types.size(); ++i) {
    bool is_first = true;
    for (const int64_t fragment :
         protein::fragments_of(structure.residue_types[i])) {
      ASSERT_LT(row, rows.size());
      const auto& cells = rows[row++];
      ASSERT_EQ(cells.size(), 8U);
      EXPECT_EQ(cells[0], std::to_string(101 + i));
      EXPECT_EQ(cells[1], structure.residue_types[i]);
      EXPECT_EQ(cells[5], protein::fragment_name(fragment));
      const bool has_chi1 = is_first && !std::isnan(structure.chi1[i]);
      EXPECT_EQ(cells[6].empty(), !has_chi1);
      if (has_chi1) {
        EXPECT_NEAR(std::stod(cells[7]), structure.chi1[i] * 180 / M_PI, 0.051);
      }
      is_first = false;
    }
  }
  const auto summary = nlohmann::json::parse(files[1].bytes);
  EXPECT_EQ(summary["name"], "1abc");
  EXPECT_EQ(summary["residues"], structure.num_residues());
  EXPECT_EQ(summary["fragments"], row - 1);
}

}  // namespace
}  // namespace lockstep
