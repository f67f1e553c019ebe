// A checkpoint of a training is one that Python's torch reads and goes on with.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

testing::ProcessOptions quietly() {
  testing::ProcessOptions options;
  options.environment = {{"OMP_NUM_THREADS", "1"},
                         {"CUDA_VISIBLE_DEVICES", ""}};
  return options;
}

std::string read_by_python(const std::string& optimizer) {
  const testing::TempDir temp;
  const auto trained = testing::run(
      {WORKER_PROGRAM, "train", "tiny", "--save_dir", temp.path() / "run",
       "--train_samples=24", "--val_samples=4", "--batch_size=8", "--epochs=2",
       "--lr=0.25", "--beta2=0.95", "--momentum=0.5", "--weight_decay=0.01",
       "--optimizer", optimizer},
      quietly());
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  const auto checked =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/train_checkpoint.py",
                    temp.path() / "run/checkpoint_step_6.pt", optimizer},
                   quietly());
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  return checked.out;
}

TEST(TrainInterop, PythonGoesOnFromACheckpointOfAdamw) {
  EXPECT_EQ(read_by_python("adamw"),
            "lr 0.25\nbetas (0.9, 0.95)\nstep 6\nglobal_step 6 epoch 2\n");
}

TEST(TrainInterop, PythonGoesOnFromACheckpointOfSgd) {
  EXPECT_EQ(read_by_python("sgd"),
            "lr 0.25\nmomentum 0.5\nglobal_step 6 epoch 2\n");
}

void run_lightning_script(const std::vector<std::string>& words) {
  std::vector<std::string> command = {
      TORCH_PYTHON, PYTHON_SCRIPTS "/lightning_checkpoint.py"};
  command.insert(command.end(), words.begin(), words.end());
  const auto result = testing::run(command, quietly());
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// The model is below "model." in a LightningModule, beside a loss and a metric.
TEST(TrainInterop, ACheckpointOfLightningBeginsARun) {
  const testing::TempDir temp;
  const std::string file = temp.path() / "last.ckpt";
  run_lightning_script({"make", file});
  const auto trained = testing::run(
      {WORKER_PROGRAM, "train", "tiny", "--save_dir", temp.path() / "run",
       "--init_from", file, "--train_samples=24", "--val_samples=4",
       "--batch_size=8", "--epochs=1", "--lr=0"},
      quietly());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("6 of 6 tensors loaded from below 'model.'; 6 "
                             "others of the file left out\n"),
            std::string::npos)
      << trained.out;
  run_lightning_script({"same", file, temp.path() / "run/best_model.pt"});
}

}  // namespace
}  // namespace lockstep
