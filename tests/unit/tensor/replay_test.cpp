#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/tensor/cuda_graph_cache.h"

namespace lockstep {
namespace {

TEST(CudaGraphCache, CallsTheFunctionWhereNothingCanBeRecorded) {
  const torch::NoGradGuard no_grad;
  int num_calls = 0;
  tensor::CudaGraphCache replay([&](const at::Tensor& x) {
    ++num_calls;
    return std::vector<at::Tensor>{x * 2, at::Tensor()};
  });
  for (int i = 1; i <= 3; ++i) {
    const auto results = replay(torch::full({2}, i));
    ASSERT_EQ(results.size(), 2U);
    EXPECT_TRUE(torch::equal(results[0], torch::full({2}, 2 * i)));
    EXPECT_FALSE(results[1].defined());
    EXPECT_EQ(num_calls, i);
  }
  EXPECT_EQ(replay.num_recorded(), 0U);
}

}  // namespace
}  // namespace lockstep
