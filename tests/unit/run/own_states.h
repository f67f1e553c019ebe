// What the ranks of a training know alone, with numbers that tell them apart.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "lockstep/run/own_state.h"

namespace lockstep::testing {

// Two sums, and the counts of skipped steps behind them; if this step is
// skipped, all are larger by 100.
inline Tree state_of_rank(int rank) {
  torch::manual_seed(static_cast<uint64_t>(rank));
  const at::Tensor sums =
      torch::tensor({1.0 + rank, 10.0 * (1 + rank), 7.0, 3.0}, at::kDouble);
  return run::own_state(sums, sums + 100, {"first"});
}

// `if_skipped` is of so many ranks that each had 100 more.
inline void expect_sums(const TreeView& own, const std::vector<double>& sums,
                        int num_summed = 1) {
  at::Tensor expected = torch::tensor(sums, at::kDouble);
  EXPECT_TRUE(torch::equal(own.at("sums").as_tensor(), expected))
      << own.at("sums").as_tensor();
  expected += 100;
  expected.slice(0, 0, 2) += 100 * (num_summed - 1);
  EXPECT_TRUE(torch::equal(own.at("sums_if_skipped").as_tensor(), expected))
      << own.at("sums_if_skipped").as_tensor();
}

}  // namespace lockstep::testing
