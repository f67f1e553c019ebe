// Trainings on a GPU: NCCL ranks that share it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

using Arguments = std::vector<std::string>;

struct TrainingRun {
  ProcessResult result = {};
  std::vector<double> losses = {};  // One per step.
  double accuracy = 0;
};

TrainingRun train(const std::filesystem::path& folder, int processes,
                  const Arguments& flags, const std::string& recipe = "tiny") {
  Arguments command = {beside_this_program("lockstep"),
                       "train",
                       recipe,
                       "--share-gpus",
                       "--nproc",
                       std::to_string(processes),
                       "--log_every",
                       "1",
                       "--device",
                       "cuda",
                       "--save_dir",
                       folder};
  command.insert(command.end(), flags.begin(), flags.end());
  TrainingRun run{.result = lockstep::testing::run(command)};
  std::ifstream lines(folder / "metrics.jsonl");
  std::string line;
  while (std::getline(lines, line)) {
    const auto record = nlohmann::json::parse(line);
    if (record.contains("train/loss") && record["train/loss"].is_number()) {
      run.losses.push_back(record["train/loss"]);
    }
    if (record.contains("val/accuracy")) run.accuracy = record["val/accuracy"];
  }
  EXPECT_EQ(run.result.exit_code, 0) << run.result.out << run.result.err;
  return run;
}

double largest_difference(const TrainingRun& left, const TrainingRun& right) {
  EXPECT_EQ(left.losses.size(), right.losses.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(left.losses.size(), right.losses.size());
       ++i) {
    largest = std::max(largest, std::abs(left.losses[i] - right.losses[i]));
  }
  return largest;
}

TEST(GpuTrain, OneTwoAndFourRanksTrainTheSameWay) {
  const TempDir folder;
  const Arguments flags = {"--epochs",        "2",  "--global_batch_size", "64",
                           "--train_samples", "500"};
  const TrainingRun alone = train(folder.path() / "1", 1, flags);
  EXPECT_LT(largest_difference(alone, train(folder.path() / "2", 2, flags)),
            1e-5);
  EXPECT_LT(largest_difference(alone, train(folder.path() / "4", 4, flags)),
            1e-5);
}

TEST(GpuTrain, TheGpuTrainsAsTheCpuDoes) {
  const TempDir folder;
  const Arguments flags = {"--epochs", "1", "--precision", "fp64"};
  Arguments on_cpu = flags;
  on_cpu.insert(on_cpu.end(), {"--device", "cpu"});
  const TrainingRun gpu = train(folder.path() / "gpu", 1, flags);
  const TrainingRun cpu = train(folder.path() / "cpu", 1, on_cpu);
  EXPECT_LT(largest_difference(gpu, cpu), 1e-10);
}

TEST(GpuTrain, ScribbleAndProteinTrainAlikeOnOneAndTwoRanks) {
  const TempDir folder;
  const std::map<std::string, Arguments> cases = {
      {"scribble",
       {"--data_path=builtin:scribble", "--model_type=res50_ASPP_lorm",
        "--layers=18", "--numclasses=6", "--l_segs=1", "--l_pesudo=0.5",
        "--l_lorm=0.1", "--crop_size=65", "--precision=fp64"}},
      {"protein",
       {"--pdb_path=builtin:protein", "--hidden_dim=64", "--dropout=0"}}};
  for (const auto& [recipe, flags] : cases) {
    Arguments words = flags;
    words.insert(words.end(),
                 {"--global_batch_size=8", "--n_steps=6", "--lr_scaling=none"});
    const TrainingRun alone =
        train(folder.path() / recipe / "1", 1, words, recipe);
    ASSERT_EQ(alone.losses.size(), 6U) << recipe;
    EXPECT_LT(largest_difference(
                  alone, train(folder.path() / recipe / "2", 2, words, recipe)),
              1e-5)
        << recipe;
  }
}

TEST(GpuTrain, EveryPrecisionLearns) {
  const TempDir folder;
  for (const std::string precision : {"fp32", "tf32", "bf16", "fp16"}) {
    const TrainingRun run =
        train(folder.path() / precision, 2,
              {"--epochs", "4", "--precision", precision, "--ema_decay", "0.99",
               "--max_grad_norm", "1"});
    EXPECT_GT(run.accuracy, 0.9) << precision;
    EXPECT_NE(run.result.out.find("precision " + precision), std::string::npos)
        << run.result.out;
  }
}

TEST(GpuTrain, TheSameRunTwiceGivesTheSameBits) {
  const TempDir folder;
  const Arguments flags = {"--epochs", "1", "--deterministic", "--dropout",
                           "0.2"};
  const TrainingRun first = train(folder.path() / "a", 2, flags);
  const TrainingRun second = train(folder.path() / "b", 2, flags);
  EXPECT_EQ(first.losses, second.losses);
}

TEST(GpuTrain, ResumesToTheSameBits) {
  const TempDir folder;
  const Arguments common = {
      "--deterministic", "--dropout", "0.2",           "--precision", "fp16",
      "--ema_decay",     "0.9",       "--lr_schedule", "cosine"};
  Arguments whole = common;
  whole.insert(whole.end(), {"--n_steps", "24"});
  const TrainingRun expected = train(folder.path() / "whole", 2, whole);
  // Stopped by the end of a shorter run, with the schedule of the longer one.
  Arguments part = common;
  part.insert(part.end(), {"--n_steps", "24", "--save_every", "10"});
  train(folder.path() / "part", 2, part);
  std::filesystem::remove(folder.path() / "part" / "checkpoint_step_24.pt");
  std::filesystem::remove(folder.path() / "part" / "checkpoint_step_20.pt");
  std::filesystem::remove(folder.path() / "part" / "best_model.pt");
  Arguments again = part;
  again.insert(again.end(), {"--resume", "latest"});
  const TrainingRun resumed = train(folder.path() / "part", 2, again);
  EXPECT_NE(resumed.result.out.find("checkpoint_step_10.pt"),
            std::string::npos);
  EXPECT_EQ(resumed.losses, expected.losses);
}

}  // namespace
}  // namespace lockstep::testing
