#include "lockstep/cli/launch_words.h"

#include <gtest/gtest.h>

#include "lockstep/base/environment.h"
#include "unit/engine/flags.h"

namespace lockstep {
namespace {

using testing::config_error;
using testing::contains;

const base::Environment kSecondOfFour = {{"WORLD_SIZE", "4"},
                                         {"RANK", "1"},
                                         {"LOCAL_RANK", "1"},
                                         {"MASTER_ADDR", "127.0.0.1"},
                                         {"MASTER_PORT", "29400"}};

std::string refusal(const std::vector<std::string>& words,
                    const base::Environment& environment) {
  return config_error([&] {
    const testing::Flags flags(words);
    cli::check_launch_words(flags.config.launch, environment);
  });
}

TEST(LaunchWords, WordsThatAgreeAreAccepted) {
  EXPECT_EQ(refusal({}, kSecondOfFour), "");
  EXPECT_EQ(refusal({"--distributed", "--ddp", "--local-rank=1",
                     "--world_size=4", "--dist_url", "tcp://127.0.0.1:29400",
                     "--master_addr=localhost", "--master_port=29400"},
                    kSecondOfFour),
            "");
  EXPECT_EQ(refusal({"--local_rank=-1", "--world_size=-1"}, kSecondOfFour), "");
  EXPECT_EQ(refusal({"--dist_url=file:///tmp/x"}, kSecondOfFour), "");
}

TEST(LaunchWords, AContradictionNamesBothSides) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--world_size=2", "--world_size 2 contradicts WORLD_SIZE=4"},
      {"--local_rank=0", "--local_rank 0 contradicts LOCAL_RANK=1"}};
  for (const auto& [word, expected] : cases) {
    const std::string text = refusal({word}, kSecondOfFour);
    EXPECT_TRUE(contains(text, expected)) << text;
    EXPECT_TRUE(contains(text, "lockstep run --nproc-per-node")) << text;
  }
}

TEST(LaunchWords, TasksOfMpirunHaveASizeToo) {
  const base::Environment task = {{"OMPI_COMM_WORLD_RANK", "1"},
                                  {"OMPI_COMM_WORLD_SIZE", "2"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_EQ(refusal({"--world_size=2", "--local_rank=1"}, task), "");
  const std::string text = refusal({"--world_size=4"}, task);
  EXPECT_TRUE(
      contains(text, "--world_size 4 contradicts OMPI_COMM_WORLD_SIZE=2"))
      << text;
}

TEST(LaunchWords, AnotherMeetingPlaceNamesTheLaunchersOption) {
  EXPECT_EQ(refusal({"--master_port=12356"}, kSecondOfFour),
            "--master_port 12356 contradicts MASTER_PORT=29400; the launcher "
            "has chosen it already: give it to the launcher (lockstep run "
            "--master_port 12356 PROGRAM ..., or torchrun --master_port 12356 "
            "...), or leave the flag out");
  const std::string address = refusal({"--master_addr=node7"}, kSecondOfFour);
  EXPECT_TRUE(contains(address,
                       "--master_addr node7 contradicts MASTER_ADDR=127.0.0.1"))
      << address;
  EXPECT_TRUE(contains(address, "lockstep run --master_addr node7")) << address;
  EXPECT_EQ(refusal({"--master_port=-1"}, kSecondOfFour), "");
}

TEST(LaunchWords, WithoutALauncherTheyGiveAWorldOfOne) {
  EXPECT_EQ(refusal({"--distributed", "--ddp", "--local_rank=0",
                     "--world_size=1", "--master_addr=node7", "--master_port=1",
                     "--dist_url=tcp://node7:1"},
                    {}),
            "");
  const std::string size = refusal({"--world_size=2"}, {});
  EXPECT_TRUE(contains(size, "--world_size 2 but no launcher")) << size;
  const std::string rank = refusal({"--local_rank=3"}, {});
  EXPECT_TRUE(contains(rank, "--local_rank 3 but no launcher")) << rank;
}

TEST(LaunchWords, AnUnknownKindOfAddressIsAnError) {
  for (const base::Environment& environment :
       {base::Environment{}, kSecondOfFour}) {
    const std::string text = refusal({"--dist_url=udp://x"}, environment);
    EXPECT_TRUE(contains(text, "udp://x")) << text;
    EXPECT_TRUE(contains(text, "env://")) << text;
  }
}

}  // namespace
}  // namespace lockstep
