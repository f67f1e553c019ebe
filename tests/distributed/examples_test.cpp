// The examples do what their top comments say.
#include <gtest/gtest.h>

#include <regex>

#include "support/process.h"

namespace lockstep {
namespace {

testing::ProcessResult run_example(const std::string& name, int num_processes) {
  return testing::run({LOCKSTEP_PROGRAM, "run", "--nproc-per-node",
                       std::to_string(num_processes),
                       std::string(EXAMPLES_FOLDER) + "/" + name},
                      {.environment = {{"CUDA_VISIBLE_DEVICES", ""}},
                       .folder = "",
                       .timeout_seconds = 60,
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

TEST(Demo, TrainsWithOneProcessAndWithTwo) {
  const auto result =
      testing::run({std::string(EXAMPLES_FOLDER) + "/lockstep-worker", "demo"},
                   {.environment = {{"CUDA_VISIBLE_DEVICES", ""}},
                    .folder = "",
                    .timeout_seconds = 100,
                    .ignored_signals = {}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto losses = numbers_after(result.out, "loss");
  ASSERT_EQ(losses.size(), 8u) << result.out;
  EXPECT_LT(losses[3], 0.5 * losses[0]);
  // The same samples in the same order, split or not.
  for (int epoch = 0; epoch < 4; ++epoch) {
    EXPECT_NEAR(losses[epoch], losses[4 + epoch], 0.05);
  }
  EXPECT_NE(result.out.find("equal on all ranks"), std::string::npos)
      << result.out;
  EXPECT_EQ(result.out.find("DIFFERENT"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace lockstep
