#include "lockstep/launch/launch_command.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

Arguments program_arguments(const Arguments& arguments) {
  return launch::parse_launch_options(arguments, {}).arguments;
}

TEST(LaunchCommand, HandsTheLocalRankToTheProgram) {
  EXPECT_EQ(program_arguments({"--nproc_per_node=2", "train.py", "--lr", "1"}),
            (Arguments{"--local-rank=${local_rank}", "--lr", "1"}));
  EXPECT_EQ(program_arguments({"-m", "package.train"}),
            (Arguments{"--local-rank=${local_rank}"}));
}

TEST(LaunchCommand, AWorkerGetsItBehindItsCommand) {
  EXPECT_EQ(program_arguments({"lockstep-worker", "train", "tiny"}),
            (Arguments{"train", "tiny", "--local-rank=${local_rank}"}));
}

TEST(LaunchCommand, UseEnvLeavesArgumentsAlone) {
  for (const char* spelling : {"--use_env", "--use-env"}) {
    EXPECT_EQ(program_arguments({spelling, "train.py", "--lr", "1"}),
              (Arguments{"--lr", "1"}));
  }
}

TEST(LaunchCommand, RunHandsNothingOver) {
  const Arguments arguments = {"train.py", "--lr", "1"};
  EXPECT_EQ(launch::parse_run_options(arguments, {}).arguments,
            (Arguments{"--lr", "1"}));
}

// As torch.distributed.launch does.
TEST(LaunchCommand, NoPythonNeedsUseEnv) {
  const std::string text = testing::refusal<ConfigError>(
      [] { program_arguments({"--no-python", "./train"}); });
  EXPECT_TRUE(testing::contains(text, "needs --use-env")) << text;
  EXPECT_EQ(program_arguments({"--no-python", "--use-env", "./train"}),
            Arguments{});
}

}  // namespace
}  // namespace lockstep
