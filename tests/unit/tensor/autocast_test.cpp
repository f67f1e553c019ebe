#include "lockstep/tensor/autocast.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

constexpr auto kCpu = c10::DeviceType::CPU;

c10::ScalarType product_dtype() {
  return torch::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type();
}

TEST(Autocast, RunsProductsInTheTypeUntilItsEnd) {
  const auto before = at::autocast::get_autocast_dtype(kCpu);
  EXPECT_EQ(product_dtype(), torch::kFloat);
  {
    const tensor::Autocast half(kCpu, torch::kHalf);
    EXPECT_EQ(product_dtype(), torch::kHalf);
  }
  EXPECT_EQ(product_dtype(), torch::kFloat);
  EXPECT_EQ(at::autocast::get_autocast_dtype(kCpu), before);
}

TEST(Autocast, NestsAndRestores) {
  const tensor::Autocast outer(kCpu, torch::kBFloat16);
  {
    const tensor::Autocast inner(kCpu, torch::kHalf);
    EXPECT_EQ(product_dtype(), torch::kHalf);
    {
      const tensor::Autocast off(kCpu, torch::kFloat);
      EXPECT_EQ(product_dtype(), torch::kFloat);
      const tensor::Autocast nothing(kCpu, std::nullopt);
      EXPECT_EQ(product_dtype(), torch::kFloat);
    }
    const tensor::Autocast nothing(kCpu, std::nullopt);
    EXPECT_EQ(product_dtype(), torch::kHalf);
  }
  EXPECT_EQ(product_dtype(), torch::kBFloat16);
}

TEST(Autocast, IsRestoredWhenAnErrorLeavesTheScope) {
  try {
    const tensor::Autocast half(kCpu, torch::kBFloat16);
    throw std::runtime_error("left");
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(at::autocast::is_autocast_enabled(kCpu));
  }
}

TEST(Autocast, CastsOfWeightsDoNotOutliveTheOutermostScope) {
  auto weight = torch::ones({2, 2}, torch::requires_grad());
  const auto x = torch::ones({2, 2});
  const auto product = [&] {
    const tensor::Autocast outer(kCpu, torch::kBFloat16);
    const tensor::Autocast inner(kCpu, torch::kBFloat16);
    return torch::mm(x, weight)[0][0].item<float>();
  };
  EXPECT_EQ(product(), 2);
  {
    const torch::NoGradGuard no_grad;
    weight.fill_(3);  // as an optimizer does
  }
  EXPECT_EQ(product(), 6);
}

TEST(Autocast, BackwardRunsOutside) {
  auto weight = torch::ones({2, 2}, torch::requires_grad());
  torch::Tensor loss;
  {
    const tensor::Autocast half(kCpu, torch::kBFloat16);
    loss = torch::mm(torch::ones({2, 2}), weight).sum();
  }
  loss.backward();
  EXPECT_EQ(weight.grad().scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::equal(weight.grad(), torch::full({2, 2}, 2.0)));
}

}  // namespace
}  // namespace lockstep
