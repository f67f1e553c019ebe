// Checkpoints with the keys of the five original projects go both ways.
#include <gtest/gtest.h>

#include "distributed/training.h"
#include "lockstep/checkpoint.h"
#include "support/tree_equal.h"

namespace lockstep {
namespace {

using testing::expect_equal;
using testing::operator+;
using testing::Training;
using testing::Words;

class OriginalLayouts : public ::testing::TestWithParam<std::string> {
 protected:
  Training training(const std::string& folder, const Words& flags) const {
    return {.recipe = "probe",
            .folder = temp_.path() / folder,
            .flags = Words{"--layout", GetParam(), "--epochs=3",
                           "--ema_decay=0.9,0.5", "--optimizer=adamw"} +
                     flags};
  }

  std::string file_of(const std::string& folder) const {
    const std::map<std::string, std::string> names = {
        {"jit", "checkpoint_epoch_3.pth"},
        {"jit_images", "checkpoint-last.pth"},
        {"dit", "model.pth"},
        {"scribble", "last_checkpoint.pth"},
        {"protein", "checkpoint_epoch_3.pt"},
        {"atlas", "checkpoint_step_18.pt"}};
    return temp_.path() / folder / names.at(GetParam());
  }

  void run_python(const Words& words) const {
    const auto result = testing::run(
        Words{TORCH_PYTHON, PYTHON_SCRIPTS "/original_layouts.py"} + words);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }

  testing::TempDir temp_;
};

TEST_P(OriginalLayouts, PythonFindsTheOriginalsKeysAndGoesOnWithThem) {
  testing::run_well(training("run", {}));
  run_python({"check", GetParam(), file_of("run")});
}

TEST_P(OriginalLayouts, ARunGoesOnFromThem) {
  testing::run_well(training("whole", {"--epochs=3"}));
  testing::run_well(training("parts", {"--epochs=2"}));
  testing::run_well(training("parts", {"--epochs=3", "--resume", "latest"}));
  const Tree whole = load_checkpoint(file_of("whole"));
  const Tree parts = load_checkpoint(file_of("parts"));
  for (const auto& entry : *whole.get_if<Tree::Dict>()) {
    const std::string& key = *entry.key.get_if<std::string>();
    if (key == "lockstep" || key == "args") continue;
    SCOPED_TRACE(key);
    expect_equal(parts.at(key).value(), entry.value);
  }
}

// Saved by torch.save from a wrapped model, beside objects that nobody knows.
TEST_P(OriginalLayouts, FilesOfTheOriginalsAreEvaluatedAndBegunWith) {
  const std::string original = temp_.path() / "original.pth";
  const std::string form = GetParam() == "jit" ? "legacy" : "zip";
  run_python({"make", GetParam(), original, form});
  const auto begun =
      testing::run(training("new", {"--init_from", original, "--lr=0"}));
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  testing::expect_in(begun.out, "4 of 4 tensors loaded\n");
  run_python({"same_weights", GetParam(), original, file_of("new")});
  const auto evaluated =
      testing::run({PROBE_WORKER, "eval", "probe", "--layout", GetParam(),
                    "--checkpoint", original, "--device=cpu"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  testing::expect_in(evaluated.out, "error: ");
}

INSTANTIATE_TEST_SUITE_P(Of, OriginalLayouts,
                         ::testing::Values("jit", "jit_images", "dit",
                                           "scribble", "protein", "atlas"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace lockstep
