// DistributedSampler gives Python's indices over a grid of settings.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "lockstep/distributed_sampler.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

struct Case {
  int64_t samples;
  int world, rank;
  int64_t epoch;
  uint64_t seed;
  bool shuffle, drop_last;
};

std::vector<Case> grid() {
  std::vector<Case> cases;
  for (const int64_t samples : {1, 2, 3, 7, 16, 100, 1001}) {
    for (const int world : {1, 2, 3, 4, 8}) {
      for (const int64_t epoch : {0, 1, 17}) {
        for (const uint64_t seed : {0ULL, 42ULL, 123456789012ULL}) {
          for (const bool shuffle : {true, false}) {
            for (const bool drop_last : {true, false}) {
              for (int rank = 0; rank < world; ++rank) {
                cases.push_back(
                    {samples, world, rank, epoch, seed, shuffle, drop_last});
              }
            }
          }
        }
      }
    }
  }
  return cases;
}

std::string ours(const Case& c) {
  const DistributedSampler sampler(
      c.samples, {c.rank, c.world},
      {.seed = c.seed,
       .shuffle = c.shuffle,
       .uneven = c.drop_last ? Uneven::kDrop : Uneven::kPad});
  std::ostringstream line;
  for (const int64_t index : sampler.indices(c.epoch)) {
    line << (line.tellp() > 0 ? " " : "") << index;
  }
  return line.str();
}

TEST(SamplerParity, EqualsPythonOnTheWholeGrid) {
  const testing::TempDir folder;
  const auto cases = grid();
  std::ostringstream input;
  for (const Case& c : cases) {
    input << c.samples << " " << c.world << " " << c.rank << " " << c.epoch
          << " " << c.seed << " " << c.shuffle << " " << c.drop_last << "\n";
  }
  const std::string path = folder.write("cases", input.str());
  const auto python = testing::run(
      {"/bin/sh", "-c",
       std::string(TORCH_PYTHON " " PYTHON_SCRIPTS "/sampler_reference.py < ") +
           path},
      {.environment = {}, .folder = "", .ignored_signals = {}});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  std::istringstream lines(python.out);
  std::string line;
  size_t compared = 0;
  for (const Case& c : cases) {
    ASSERT_TRUE(std::getline(lines, line));
    ASSERT_EQ(ours(c), line) << "samples " << c.samples << " world " << c.world
                             << " rank " << c.rank << " epoch " << c.epoch;
    ++compared;
  }
  EXPECT_EQ(compared, 4536u);
}

}  // namespace
}  // namespace lockstep
