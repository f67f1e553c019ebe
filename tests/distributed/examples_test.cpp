// The examples do what their top comments say.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <regex>

#include "lockstep/base/files.h"
#include "lockstep/formats/png.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

testing::ProcessResult run_example(const std::string& name, int num_processes,
                                   const Words& flags = {},
                                   const std::string& folder = "") {
  Words command = {LOCKSTEP_PROGRAM, "run", "--nproc-per-node",
                   std::to_string(num_processes),
                   std::string(EXAMPLES_FOLDER) + "/" + name};
  command.insert(command.end(), flags.begin(), flags.end());
  return testing::run(command, {.environment = {{"CUDA_VISIBLE_DEVICES", ""}},
                                .folder = folder,
                                .ignored_signals = {}});
}

std::vector<double> numbers_after(const std::string& text,
                                  const std::string& word) {
  std::vector<double> numbers;
  const std::regex pattern(word + " ([0-9.e+-]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end;
       at != end; ++at) {
    numbers.push_back(std::stod((*at)[1]));
  }
  return numbers;
}

TEST(Examples, AllReduce) {
  const auto result = run_example("01_all_reduce", 4);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_NE(result.out.find("rank " + std::to_string(rank) +
                              " of 4: the sum is 10\n"),
              std::string::npos)
        << result.out;
  }
}

TEST(Examples, StepGraphLearns) {
  for (const int num_processes : {1, 2}) {
    const auto result = run_example("08_step_graph", num_processes, {"300"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto losses = numbers_after(result.out, "loss");
    ASSERT_EQ(losses.size(), 3u) << result.out;
    EXPECT_LT(losses.back(), 0.9 * losses.front());
  }
}

TEST(Examples, DdpInThirtyLines) {
  for (const int num_processes : {1, 2}) {
    const auto result = run_example("02_ddp_in_30_lines", num_processes);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto losses = numbers_after(result.out, "loss");
    ASSERT_EQ(losses.size(), 5u) << result.out;
    EXPECT_LT(losses.back(), 0.3 * losses.front());
  }
}

TEST(Examples, OwnTraining) {
  const auto result = run_example("03_own_training", 2);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto accuracies = numbers_after(result.out, "accuracy");
  ASSERT_EQ(accuracies.size(), 15u) << result.out;
  EXPECT_GT(accuracies.back(), 0.9);
}

const testing::ProcessOptions kOneThread{
    .environment = {{"CUDA_VISIBLE_DEVICES", ""}, {"OMP_NUM_THREADS", "1"}}};

// Kills a rank after step 500.
testing::ProcessResult run_and_kill(const Words& command,
                                    const std::string& exchange) {
  testing::ProcessOptions options = kOneThread;
  options.environment["LOCKSTEP_EXCHANGE"] = exchange;
  testing::Process process(command, options);
  EXPECT_TRUE(process.wait_for_output("step 500\n"));
  for (const pid_t pid : testing::find_marked(process.marker())) {
    const auto name =
        base::try_read_file("/proc/" + std::to_string(pid) + "/comm");
    if (name != "07_recovery\n") continue;
    kill(pid, SIGKILL);
    break;
  }
  return process.wait();
}

class RecoveryExample : public ::testing::TestWithParam<const char*> {};

TEST_P(RecoveryExample, GivesTheSameLastLineWhenRanksAreKilled) {
  Words command = {LOCKSTEP_PROGRAM,
                   "run",
                   "--nproc-per-node",
                   "3",
                   "--recover",
                   "memory",
                   std::string(EXAMPLES_FOLDER) + "/07_recovery",
                   "4000"};
  auto result = run_and_kill(command, GetParam());
  // The kill came too late: more steps.
  while (result.err.find("is started again") == std::string::npos &&
         command.back().size() < 9) {
    command.back() += "0";
    result = run_and_kill(command, GetParam());
  }
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto expected = testing::run(command, kOneThread);
  ASSERT_EQ(expected.exit_code, 0) << expected.err;
  const auto last_line = [&](const std::string& text) {
    return text.substr(text.find("after " + command.back() + " steps"));
  };
  EXPECT_EQ(last_line(result.out), last_line(expected.out));
}

INSTANTIATE_TEST_SUITE_P(Exchanges, RecoveryExample,
                         ::testing::Values("shared", "gloo"));

// What docs/tutorial/adding-a-recipe.md does with it, in the same order.
TEST(Examples, OwnRecipe) {
  const testing::TempDir folder;
  const auto ring = [&](int num_processes, const Words& flags) {
    return run_example("06_own_recipe", num_processes, flags,
                       folder.path().string());
  };
  const auto help = ring(1, {"--help"});
  EXPECT_NE(help.out.find("--width"), std::string::npos) << help.out;
  EXPECT_NE(help.out.find("--noise"), std::string::npos) << help.out;

  const auto trained = ring(2, {"--epochs", "3"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("World size: 2"), std::string::npos);
  const auto accuracies = numbers_after(trained.out, "accuracy");
  ASSERT_FALSE(accuracies.empty()) << trained.out;
  EXPECT_GT(accuracies.back(), 0.9) << trained.out;
  for (const char* file : {"config.yaml", "train.log", "metrics.jsonl",
                           "best_model.pt", "checkpoint_step_189.pt"}) {
    EXPECT_TRUE(exists(folder.path() / "runs/ring" / file)) << file;
  }

  EXPECT_EQ(ring(2, {"--epochs", "4"}).exit_code, 2) << "a run is there";
  const auto resumed = ring(2, {"--epochs", "4", "--resume", "latest"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("Epoch 4/4"), std::string::npos) << resumed.out;

  const auto evaluated =
      ring(2, {"eval", "--checkpoint", "runs/ring/best_model.pt"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_GT(numbers_after(evaluated.out, "accuracy:").at(0), 0.9);

  const auto mistyped = ring(1, {"trian"});
  EXPECT_EQ(mistyped.exit_code, 2);
  EXPECT_NE(mistyped.err.find("unknown command 'trian'"), std::string::npos)
      << mistyped.err;
}

TEST(Examples, OwnRecipeIsListedWhereItIsTheWorker) {
  const auto result = testing::run(
      {LOCKSTEP_PROGRAM, "recipes"},
      {.environment = {{"LOCKSTEP_WORKER",
                        std::string(EXAMPLES_FOLDER) + "/06_own_recipe"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("recipes:\n  ring  ")) << result.out;
}

// A program of one recipe takes the words that lockstep train hands on.
TEST(Examples, OwnRecipeStandsInForTheWorker) {
  const testing::TempDir folder;
  const auto result = testing::run(
      {LOCKSTEP_PROGRAM, "train", "ring", "--nproc", "2", "--fast_dev_run"},
      {.environment = {{"CUDA_VISIBLE_DEVICES", ""},
                       {"LOCKSTEP_WORKER",
                        std::string(EXAMPLES_FOLDER) + "/06_own_recipe"}},
       .folder = folder.path().string(),
       .ignored_signals = {}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("World size: 2"), std::string::npos) << result.out;
}

// As ./lockstep.sh demo starts it, with a hundredth of the steps.
TEST(Demo, LeavesEverythingThatItSays) {
  const testing::TempDir folder;
  const auto result = testing::run(
      {SOURCE_FOLDER "/tools/demo", EXAMPLES_FOLDER, "runs/demo"},
      {.environment = {{"CUDA_VISIBLE_DEVICES", ""}, {"DEMO_STEPS", "19"}},
       .folder = folder.path().string(),
       .ignored_signals = {}});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* name :
       {"sampled_seed_0_ema_0/images/step20_cfg2.5_ema.png",
        "images/step19_cfg2.5.png", "images/step20_cfg2.5_ema.gif", "loss.png",
        "loss.svg", "metrics.jsonl", "metrics.csv", "train.log", "tensorboard",
        "wandb/latest-run", "model.pth", "demo.png"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "runs" / "demo" / name))
        << name;
  }
  // Ten classes of five images each, beside the curve.
  const formats::PngHeader header = formats::read_png_header(
      base::read_file(folder.path() / "runs" / "demo" / "demo.png"));
  EXPECT_EQ(header.width, 1620);
  EXPECT_EQ(header.height, 618);
  // stdout is not a terminal: no image, no letters that stand for it.
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(result.out.find("diamond"), std::string::npos);
  EXPECT_NE(result.out.find("resuming from runs/demo/model.pth"),
            std::string::npos);
  EXPECT_NE(result.out.find("validation at step 20"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
