#include "lockstep/diffusion/ddim.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using Times = std::vector<int64_t>;

TEST(Ddim, GoesFrom999To0) {
  EXPECT_EQ(diffusion::ddim_times(1), (Times{999, 0}));
  EXPECT_EQ(diffusion::ddim_times(4), (Times{999, 749, 500, 250, 0}));
  EXPECT_EQ(diffusion::ddim_times(999).size(), 1000U);
  EXPECT_EQ(diffusion::ddim_times(5000).size(), 1000U);
  EXPECT_EQ(diffusion::ddim_times(5000).back(), 0);
  EXPECT_THROW(diffusion::ddim_times(0), ConfigError);
}

TEST(Ddim, GivesExactlyWhatAnOracleKnows) {
  const auto image = torch::rand({2, 3, 4, 4});
  for (const int64_t steps : {1, 7, 20, 999}) {
    const auto sampled = diffusion::sample_ddim(
        [&](const at::Tensor&, int64_t) { return image; },
        torch::randn({2, 3, 4, 4}), {.num_steps = steps});
    EXPECT_TRUE(torch::equal(sampled, image)) << steps;
  }
}

// For numbers with mean m and deviation s the best denoiser is known, and the
// flow of the probability keeps (x_t - a m) / deviation of x_t.
TEST(Ddim, ConvergesToTheFlowOfAGaussian) {
  const double mean = 0.7;
  const double deviation = 0.4;
  const auto spread = [&](int64_t t) {
    const double a = diffusion::clean_part(t);
    return std::hypot(a * deviation, 1 - a);
  };
  const diffusion::Denoiser best = [&](const at::Tensor& x, int64_t t) {
    const double a = diffusion::clean_part(t);
    const double gain = a * deviation * deviation / std::pow(spread(t), 2);
    return mean + gain * (x - a * mean);
  };
  const auto noise = torch::randn({1000}, torch::kDouble);
  const auto exact = mean + deviation *
                                (noise - diffusion::clean_part(999) * mean) /
                                spread(999);
  const auto error = [&](int64_t steps) {
    return (diffusion::sample_ddim(best, noise, {.num_steps = steps}) - exact)
        .abs()
        .max()
        .item<double>();
  };
  // First order: half the step, half the error.
  EXPECT_LT(error(20), 0.2);
  EXPECT_NEAR(error(111) / error(37), 1.0 / 3, 0.05);
  EXPECT_NEAR(error(999) / error(333), 1.0 / 3, 0.05);
  EXPECT_LT(error(999), 0.004);
}

TEST(Ddim, CorrectsBeforeEveryPrediction) {
  std::vector<int64_t> corrected;
  std::vector<int64_t> denoised;
  diffusion::sample_ddim(
      [&](const at::Tensor& x, int64_t t) {
        EXPECT_EQ(x.item<float>(), static_cast<float>(t));
        denoised.push_back(t);
        return x;
      },
      torch::zeros({1}),
      {.num_steps = 3, .correct = [&](const at::Tensor& x, int64_t t) {
         corrected.push_back(t);
         return torch::full_like(x, static_cast<double>(t));
       }});
  EXPECT_EQ(corrected, (Times{999, 666, 333}));
  EXPECT_EQ(denoised, corrected);
}

}  // namespace
}  // namespace lockstep
