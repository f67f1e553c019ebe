// What a user reads when GPUs and processes do not fit, or a rank of NCCL
// fails.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <csignal>

#include "lockstep/base/environment.h"
#include "lockstep/base/error_file.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::expect_in;
using testing::run_processes;
using testing::run_ranks;

bool is_rank() { return std::getenv("RANK") != nullptr; }

TEST(GpuFailure, MoreProcessesThanGpusIsRefusedBeforeTheStart) {
  const std::string output =
      run_processes({.size = 65, .expected_exit_code = 2},
                    [] { ADD_FAILURE() << "started"; });
  expect_in(output, "65 processes");
  expect_in(output, "--share-gpus");
}

TEST(GpuFailure, TwoRanksOnOneGpuAreNamed) {
  const testing::RankOptions options{.size = 2,
                                     .launcher_options = {"--share-gpus"}};
  run_processes(options, [] {
    base::Environment environment = base::process_environment();
    environment.erase("LOCKSTEP_SHARE_GPUS");
    environment.erase("NCCL_HOSTID");
    environment["CUDA_VISIBLE_DEVICES"] = "0";
    try {
      World::from_environment({.device = DeviceChoice::kCuda}, environment);
      ADD_FAILURE() << "joined";
    } catch (const DeviceError& error) {
      expect_in(error.what(), "ranks 0 and 1");
      expect_in(error.what(), "both use the same GPU");
    }
  });
}

TEST(GpuFailure, NcclDebugLinesCarryTheRank) {
  const std::string output = run_ranks({.size = 2,
                                        .environment = {{"NCCL_DEBUG", "INFO"}},
                                        .launcher_options = {"--share-gpus"},
                                        .device = DeviceChoice::kCuda},
                                       [](const World& world) {
                                         auto tensor =
                                             torch::ones({4}, world.device());
                                         world.all_reduce(tensor);
                                       });
  if (is_rank()) return;
  expect_in(output, "[rank0]:");
  expect_in(output, "[rank1]:");
  expect_in(output, "NCCL INFO");
}

TEST(GpuFailure, LaunchBlockingWorks) {
  run_ranks({.size = 2,
             .environment = {{"CUDA_LAUNCH_BLOCKING", "1"}},
             .launcher_options = {"--share-gpus"},
             .device = DeviceChoice::kCuda},
            [](const World& world) {
              auto tensor = torch::ones({4}, world.device());
              world.all_reduce(tensor);
              EXPECT_EQ(tensor[0].item<int>(), 2);
            });
}

TEST(GpuFailure, AKilledRankIsTheRootCause) {
  const std::string output =
      run_ranks({.size = 2,
                 .expected_exit_code = 128 + SIGKILL,
                 .launcher_options = {"--share-gpus", "--shutdown-timeout=3"},
                 .device = DeviceChoice::kCuda},
                [](const World& world) {
                  auto tensor = torch::ones({1 << 20}, world.device());
                  for (int step = 0; step < 1000; ++step) {
                    if (step == 5 && world.rank() == 1) std::raise(SIGKILL);
                    world.all_reduce(tensor);
                    tensor.fill_(1).sum().item<float>();
                  }
                });
  if (!is_rank()) expect_in(output, "rank      : 1");
}

TEST(GpuFailure, AFullGpuIsTheVerdict) {
  const std::string output = run_ranks(
      {.size = 1, .expected_exit_code = 7, .device = DeviceChoice::kCuda},
      [](const World& world) {
        // As run_program() does for users' programs.
        try {
          torch::empty({int64_t{1} << 46}, world.device());
        } catch (const c10::Error& error) {
          const DeviceError reported(error.what_without_backtrace());
          base::report_to_launcher(reported);
          std::_Exit(exit_code(reported));
        }
      });
  if (is_rank()) return;
  expect_in(output, "Verdict: out of GPU memory");
  expect_in(output, "CUDA out of memory");
}

TEST(GpuFailure, AStoppedRankIsNamedByTheTimeout) {
  if (is_rank()) {
    run_ranks({.device = DeviceChoice::kCuda}, [](const World& world) {
      auto tensor = torch::ones({16}, world.device());
      for (int step = 0; step < 1000; ++step) {
        if (step == 5 && world.rank() == 1) std::raise(SIGSTOP);
        world.all_reduce(tensor);
        tensor.fill_(1).sum().item<float>();
      }
    });
    return;
  }
  // c10d's own watchdog takes another minute; the launcher ends the job first.
  const std::string output =
      run_processes({.size = 2,
                     .expected_exit_code = 6,
                     .launcher_options = {"--share-gpus", "--timeout=8",
                                          "--shutdown-timeout=3"}},
                    [] {});
  expect_in(output, "stopped");
  expect_in(output, "rank 1");
  expect_in(output, "--timeout");
}

TEST(GpuFailure, EndsWithoutAWord) {
  const std::string output = run_ranks({.size = 2,
                                        .launcher_options = {"--share-gpus"},
                                        .device = DeviceChoice::kCuda},
                                       [](const World& world) {
                                         auto tensor =
                                             torch::ones({4}, world.device());
                                         world.all_reduce(tensor);
                                       });
  if (is_rank()) return;
  EXPECT_EQ(output.find("arning"), std::string::npos) << output;
  EXPECT_EQ(output.find("rror"), std::string::npos) << output;
}

}  // namespace
}  // namespace lockstep
