// Lockstep's parameters after 20 steps are those of Python's
// DistributedDataParallel, bit for bit. OMP_NUM_THREADS=1 on both sides: the
// number of threads changes the order of sums.
#include <gtest/gtest.h>

#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

const std::vector<std::string> kCases = {
    "plain",          "default_buckets", "no_sync",          "unused",
    "batchnorm",      "bucket_view",     "bucket_view_kept", "fp16",
    "bf16",           "static_graph",    "frozen",           "join",
    "join_effective", "join_buffers",    "join_unused"};

class DdpParity : public ::testing::TestWithParam<int> {
 protected:
  // Runs the program on all ranks; its files land in a folder of their own.
  void run_all_cases(const std::vector<std::string>& program,
                     const std::filesystem::path& folder,
                     const std::string& exchange) {
    std::filesystem::create_directories(folder);
    std::vector<std::string> command = {LOCKSTEP_PROGRAM, "run",
                                        "--nproc-per-node",
                                        std::to_string(GetParam())};
    command.insert(command.end(), program.begin(), program.end());
    command.push_back(folder.string());
    command.insert(command.end(), kCases.begin(), kCases.end());
    const auto result =
        testing::run(command, {.environment = {{"OMP_NUM_THREADS", "1"},
                                               {"LOCKSTEP_EXCHANGE", exchange}},
                               .folder = "",
                               .ignored_signals = {}});
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  }

  void compare_ranks(const std::filesystem::path& ours,
                     const std::filesystem::path& theirs,
                     const std::string& name) {
    std::string first;
    for (int rank = 0; rank < GetParam(); ++rank) {
      SCOPED_TRACE("on rank " + std::to_string(rank));
      const std::string file = name + ".rank" + std::to_string(rank) + ".bin";
      const std::string own = base::read_file(ours / file);
      ASSERT_GT(own.size(), 100000u);
      EXPECT_TRUE(own == base::read_file(theirs / file))
          << "differs from Python";
      if (rank == 0) first = own;
      // BatchNorm's running statistics are each rank's own after the last step.
      if (name != "batchnorm") {
        EXPECT_TRUE(own == first) << "ranks differ";
      }
    }
  }
};

TEST_P(DdpParity, EqualsPythonBitForBit) {
  const testing::TempDir folder;
  const auto theirs = folder.path() / "python";
  ASSERT_NO_FATAL_FAILURE(
      run_all_cases({TORCH_PYTHON, DDP_REFERENCE}, theirs, "gloo"));
  for (const std::string exchange : {"shared", "gloo"}) {
    const auto ours = folder.path() / exchange;
    ASSERT_NO_FATAL_FAILURE(run_all_cases({DDP_PARITY_WORKER}, ours, exchange));
    for (const std::string& name : kCases) {
      SCOPED_TRACE(name + " over " + exchange);
      compare_ranks(ours, theirs, name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, DdpParity, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace lockstep
