// Mistakes of the user: clear words, exit code 2, nothing written.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>

#include "distributed/training.h"
#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

struct Mistake {
  Words flags = {};
  std::vector<std::string> parts = {};  // Expected in the message.
  int exit_code = 2;
  std::string recipe = "tiny";
  int world = 1;
};

class BadInput : public ::testing::Test {
 protected:
  fs::path folder() const { return temp_.path() / "run"; }

  // All at once: each does little more than start.
  void expect_refusals(const std::vector<Mistake>& mistakes) const {
    std::vector<std::unique_ptr<Process>> processes;
    for (const Mistake& mistake : mistakes) {
      Training training{.recipe = mistake.recipe,
                        .world = mistake.world,
                        .folder = folder(),
                        .flags = mistake.flags};
      processes.push_back(std::make_unique<Process>(command_of(training),
                                                    process_options(training)));
    }
    for (size_t i = 0; i < mistakes.size(); ++i) {
      SCOPED_TRACE(mistakes[i].flags[0]);
      const ProcessResult result = processes[i]->wait();
      EXPECT_EQ(result.exit_code, mistakes[i].exit_code) << result.out;
      for (const std::string& part : mistakes[i].parts) {
        expect_in(result.err, part);
      }
      expect_not_in(result.err, "InternalError");
    }
  }

  TempDir temp_;
};

TEST_F(BadInput, FlagsThatCannotBe) {
  expect_refusals(
      {{{"--data_path=/no/such/data"}, {"/no/such/data", "builtin:bars"}},
       {{"--train_samples=0"}, {"the training data set is empty"}},
       {{"--epochs=0"}, {"--epochs", "at least 1"}},
       {{"--batch_size=many"}, {"--batch_size", "'many'"}},
       {{"--bath_size=4"}, {"--bath_size", "--batch_size"}},
       {{"--use_amp", "--precision=fp32"}, {"--use_amp", "--precision fp32"}},
       {{"--world_size=2"}, {"--world_size 2", "no launcher"}},
       {{"--global_batch_size=7", "--batch_size=2"},
        {"--global_batch_size 7", "use 6, 8"}},
       {{"--limit_val_batches=0"}, {"--limit_val_batches"}},
       {{"--predict=8"}, {"--predict '8'", "8x8,64x8"}},
       {{"--predict=8x8"}, {"--predict", "at least two", "--nproc 2"}},
       {{"word"}, {"'word'", "--help"}}});
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(BadInput, FilesOfSettings) {
  const auto config = [&](const std::string& name, const std::string& text) {
    return "--config=" + temp_.write(name, text);
  };
  expect_refusals(
      {{{config("broken.yaml", "epochs: 1\nlr: }0.1\n")}, {"broken.yaml:2:5"}},
       {{config("type.yaml", "epochs: 1\nbatch_size: many\n")},
        {"type.yaml:2:13", "batch_size", "'many'"}},
       {{config("key.yaml", "epochs: 1\nbach_size: 4\n")},
        {"key.yaml:2:1", "bach_size", "batch_size"}},
       {{"--config=/no/such/file.yaml"}, {"/no/such/file.yaml"}}});
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(BadInput, PlacesThatCannotHoldARun) {
  const std::string file = temp_.write("file", "x");
  expect_refusals(
      {{{"--save_dir=" + file + "/run"}, {file + " is a file", "--save_dir"}},
       {{"--save_dir=" + file + "/run", "--fast_dev_run"},
        {file + " is a file", "--save_dir"}},
       {{"--save_dir=/proc/run"}, {"--save_dir /proc/run"}}});
  EXPECT_EQ(base::read_file(file), "x");
}

TEST_F(BadInput, AFolderThatHoldsARun) {
  const Words flags = {"--train_samples=8", "--val_samples=4", "--epochs=1"};
  run_well({.folder = folder(), .flags = flags});
  const auto files = files_below(folder());
  const std::string log = base::read_file(folder() / "train.log");
  expect_refusals(
      {{flags, {"already holds a run", "--resume latest", "--overwrite"}}});
  EXPECT_EQ(files_below(folder()), files);
  EXPECT_EQ(base::read_file(folder() / "train.log"), log);
  // Each of the three ways that the message names.
  run_well({.folder = folder(), .flags = flags + Words{"--resume=latest"}});
  run_well({.folder = folder(), .flags = flags + Words{"--overwrite"}});
  EXPECT_EQ(metric(folder(), "val/loss").size(), 1U);
}

TEST_F(BadInput, CheckpointsThatCannotBeResumed) {
  const TempDir other;
  run_well({.recipe = "probe",
            .folder = other.path() / "run",
            .flags = {"--epochs=1"}});
  const fs::path good = other.path() / "run/checkpoint_step_6.pt";
  run_well({.folder = other.path() / "tiny",
            .flags = {"--n_steps=2", "--train_samples=8"}});
  std::string bytes =
      base::read_file(other.path() / "tiny/checkpoint_step_2.pt");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const std::string damaged = temp_.write("damaged.pt", bytes);
  const std::string cut = temp_.write("cut.pt", bytes.substr(0, 1000));
  expect_refusals(
      {{{"--resume=/no/such/file.pt"}, {"/no/such/file.pt", "--resume latest"}},
       {{"--resume=" + good.string()}, {"of the recipe probe, not of tiny"}},
       {{"--resume=" + damaged}, {"damaged.pt"}, 4},
       {{"--resume=" + cut}, {"cut.pt"}, 4}});
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(BadInput, AFolderWhoseCheckpointsAreAllDamaged) {
  run_well({.folder = folder(), .flags = {"--epochs=1", "--n_steps=2"}});
  for (const char* name : {"checkpoint_step_2.pt", "best_model.pt"}) {
    std::string bytes = base::read_file(folder() / name);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    base::write_file_atomically(folder() / name, bytes);
  }
  const auto result =
      run(Training{.folder = folder(), .flags = {"--resume=latest"}});
  EXPECT_EQ(result.exit_code, 4);
  expect_in(result.err, "every checkpoint in");
  expect_in(result.err, "--overwrite starts over");
  const auto other = run(Training{
      .recipe = "probe", .folder = folder(), .flags = {"--resume=latest"}});
  EXPECT_EQ(other.exit_code, 2);
  expect_in(other.err, "not of the recipe probe");
}

TEST_F(BadInput, RecipesThatAreNot) {
  const auto near = run({WORKER_PROGRAM, "train", "tyni"});
  EXPECT_EQ(near.exit_code, 2);
  expect_in(near.err, "unknown recipe 'tyni'");
  expect_in(near.err, "tiny");
  const auto none = run({WORKER_PROGRAM, "train"});
  EXPECT_EQ(none.exit_code, 2);
  expect_in(none.err, "needs a recipe");
}

TEST_F(BadInput, WorldsThatDoNotFit) {
  expect_refusals(
      {{.flags = {"--train_samples=2"},
        .parts = {"2 samples for 3 processes", "at most 2 processes"},
        .world = 3},
       {.flags = {"--world_size=3"},
        .parts = {"--world_size 3 contradicts WORLD_SIZE=2"},
        .world = 2}});
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(BadInput, ABatchLargerThanTheShareWorksWithANote) {
  const ProcessResult result =
      run(Training{.world = 2,
                   .folder = folder(),
                   .flags = {"--train_samples=5", "--val_samples=3",
                             "--batch_size=64", "--epochs=2"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "note: a batch of 64 per process");
  EXPECT_EQ(metric(folder(), "train/loss").size(), 2U);
}

}  // namespace
}  // namespace lockstep::testing
