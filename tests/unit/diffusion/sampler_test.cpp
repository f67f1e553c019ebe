#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/diffusion/guidance.h"
#include "lockstep/diffusion/ode.h"

namespace lockstep {
namespace {

// Data from N(m, s^2) and noise from N(0, 1), mixed as t x + (1 - t) e: z_t is
// normal with mean t m and variance t^2 s^2 + (1 - t)^2. The flow that carries
// one of these distributions to the next maps z by their means and deviations.
constexpr double kMean = 1.5;
constexpr double kDeviation = 0.4;

double deviation_at(double t) { return std::hypot(t * kDeviation, 1 - t); }

// E[x - e | z_t = z]
at::Tensor gaussian_velocity(const at::Tensor& z, double t) {
  const double variance = std::pow(deviation_at(t), 2);
  const double slope = (t * kDeviation * kDeviation - (1 - t)) / variance;
  return kMean + slope * (z - t * kMean);
}

at::Tensor some_noise() { return torch::linspace(-3, 3, 25, torch::kDouble); }

using Method = at::Tensor (*)(const at::Tensor& z,
                              const std::vector<double>& times);

at::Tensor by_euler(const at::Tensor& z, const std::vector<double>& times) {
  return diffusion::follow_euler(gaussian_velocity, z,
                                 diffusion::euler_steps(times));
}

at::Tensor by_heun(const at::Tensor& z, const std::vector<double>& times) {
  return diffusion::follow_heun(gaussian_velocity, z, times);
}

// Largest distance of the sampled map from the exact one, both of the same
// points, from time 0 to 1 or back.
double error(Method method, int64_t count) {
  const auto x = method(some_noise(), diffusion::even_times(0, 1, count));
  return (x - (kMean + kDeviation * some_noise())).abs().max().item<double>();
}

double error_backwards(Method method, int64_t count) {
  const auto noise = method(kMean + kDeviation * some_noise(),
                            diffusion::even_times(1, 0, count));
  return (noise - some_noise()).abs().max().item<double>();
}

TEST(Ode, TimesAreEvenAndEndExactly) {
  EXPECT_EQ(diffusion::even_times(0, 1, 4),
            (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(diffusion::even_times(1, 0, 2), (std::vector<double>{1, 0.5, 0}));
  EXPECT_EQ(diffusion::even_times(0, 1, 50).back(), 1);
}

TEST(Ode, EulerFollowsTheFlowOfAGaussianWithFirstOrder) {
  for (const auto& of : {error, error_backwards}) {
    EXPECT_LT(of(by_euler, 1000), 0.01);
    EXPECT_NEAR(of(by_euler, 500) / of(by_euler, 1000), 2, 0.05);
  }
}

TEST(Ode, HeunFollowsTheFlowOfAGaussianWithSecondOrder) {
  for (const auto& of : {error, error_backwards}) {
    EXPECT_LT(of(by_heun, 1000), 1e-5);
    EXPECT_NEAR(of(by_heun, 500) / of(by_heun, 1000), 4, 0.1);
  }
}

TEST(Ode, HeunNeverAsksForTheLastTime) {
  std::vector<double> asked;
  const diffusion::Velocity probe = [&](const at::Tensor& z, double t) {
    asked.push_back(t);
    return torch::ones_like(z);
  };
  const auto z = diffusion::follow_heun(probe, torch::zeros({1}),
                                        diffusion::even_times(0, 1, 2));
  EXPECT_EQ(asked, (std::vector<double>{0, 0.5, 0.5}));
  EXPECT_EQ(z.item<float>(), 1);
}

TEST(Ode, StepsMayBeOtherThanTheGapsOfTheirTimes) {
  std::vector<double> asked;
  const diffusion::Velocity probe = [&](const at::Tensor& z, double t) {
    asked.push_back(t);
    return torch::ones_like(z);
  };
  const std::vector<diffusion::EulerStep> steps = {{1, -0.5}, {0, -0.5}};
  std::vector<std::pair<int64_t, float>> seen;
  const auto z = diffusion::follow_euler(
      probe, torch::ones({1}), steps, [&](int64_t done, const at::Tensor& now) {
        seen.emplace_back(done, now.item<float>());
      });
  EXPECT_EQ(asked, (std::vector<double>{1, 0}));
  EXPECT_EQ(seen, (std::vector<std::pair<int64_t, float>>{{1, 0.5F}, {2, 0}}));
  EXPECT_EQ(z.item<float>(), 0);
}

TEST(Ode, ObserversSeeEveryStepOfHeun) {
  std::vector<int64_t> seen;
  diffusion::follow_heun(
      gaussian_velocity, some_noise(), diffusion::even_times(0, 1, 3),
      [&](int64_t done, const at::Tensor&) { seen.push_back(done); });
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 2, 3}));
}

constexpr int64_t kNone = 7;

// 1 with a label and 0 without: the guided velocity is the weight.
struct LabelProbe {
  std::vector<int64_t> batches = {};
  std::vector<double> times = {};

  diffusion::LabelledVelocity velocity() {
    return [this](const at::Tensor& z, const at::Tensor& t,
                  const at::Tensor& labels) {
      batches.push_back(z.size(0));
      times.push_back(t[-1].item<double>());
      return (labels != kNone).to(torch::kDouble).view({-1, 1}) *
             torch::ones_like(z);
    };
  }
};

TEST(Guidance, WeighsEachRowWithItsOwnWeightInsideTheInterval) {
  LabelProbe probe;
  const auto weights = torch::tensor({0.0, 1.0, 2.5}, torch::kDouble);
  const diffusion::Velocity guided = diffusion::guided_velocity(
      probe.velocity(), {.labels = torch::tensor({0, 1, 2}),
                         .no_label = kNone,
                         .weights = weights,
                         .interval = {.low = 0.1, .high = 1}});
  const auto z = torch::zeros({3, 2}, torch::kDouble);
  const auto weight_at = [&](double t) { return guided(z, t).select(1, 0); };
  for (const double t : {0.2, 0.5, 0.99}) {
    EXPECT_TRUE(torch::equal(weight_at(t), weights)) << t;
  }
  for (const double t : {0.0, 0.1, 1.0}) {
    EXPECT_TRUE(torch::equal(weight_at(t), torch::ones_like(weights))) << t;
  }
  // With and without labels in one batch; with them alone outside.
  EXPECT_EQ(probe.batches, (std::vector<int64_t>{6, 6, 6, 3, 3, 3}));
  EXPECT_EQ(probe.times, (std::vector<double>{0.2, 0.5, 0.99, 0, 0.1, 1}));
}

TEST(Guidance, ALowOfZeroIncludesZero) {
  EXPECT_TRUE(diffusion::is_guided({.low = 0, .high = 1}, 0));
  EXPECT_FALSE(diffusion::is_guided({.low = 0, .high = 1}, 1));
  EXPECT_FALSE(diffusion::is_guided({.low = 0.2, .high = 0.6}, 0.2));
  EXPECT_TRUE(diffusion::is_guided({.low = 0.2, .high = 0.6}, 0.4));
  EXPECT_FALSE(diffusion::is_guided({.low = 0.2, .high = 0.6}, 0.6));
  EXPECT_TRUE(diffusion::is_guided({}, 0));
  EXPECT_TRUE(diffusion::is_guided({}, 1));
}

TEST(Guidance, AWeightOfOneIsWhatIsComputedOutsideTheInterval) {
  const diffusion::LabelledVelocity velocity =
      [](const at::Tensor& z, const at::Tensor& t, const at::Tensor& labels) {
        return (z + t.view({-1, 1})).sin() *
               (1 + labels.to(torch::kDouble).view({-1, 1}));
      };
  diffusion::GuidanceConfig config = {
      .labels = torch::tensor({3, 4}),
      .no_label = kNone,
      .weights = torch::ones({2}, torch::kDouble)};
  const auto z = torch::randn({2, 5}, torch::kDouble);
  const auto inside = diffusion::guided_velocity(velocity, config)(z, 0.5);
  config.interval = {.low = 0.6, .high = 1};
  EXPECT_TRUE(
      torch::allclose(diffusion::guided_velocity(velocity, config)(z, 0.5),
                      inside, 1e-12, 1e-12));
}

// Each mean has its label, without one it is 0: guidance moves the samples.
TEST(Guidance, SamplesOfAGaussianLieWhereTheWeightPutsThem) {
  const diffusion::LabelledVelocity velocity =
      [](const at::Tensor& z, const at::Tensor& t, const at::Tensor& labels) {
        const auto mean = (labels != kNone).to(torch::kDouble).view({-1, 1});
        const auto time = t.view({-1, 1});
        const auto rest = 1 - time;
        const auto variance = (time * kDeviation).square() + rest.square();
        const auto slope = (time * kDeviation * kDeviation - rest) / variance;
        return mean + slope * (z - time * mean);
      };
  const auto noise = torch::linspace(-2, 2, 5, torch::kDouble);
  const diffusion::Velocity guided = diffusion::guided_velocity(
      velocity, {.labels = torch::tensor({0, 0}),
                 .no_label = kNone,
                 .weights = torch::tensor({1.0, 3.0}, torch::kDouble)});
  const auto x = diffusion::follow_heun(guided, noise.repeat({2, 1}),
                                        diffusion::even_times(0, 1, 400));
  // Velocities are linear in the mean, which the weight multiplies.
  const auto expected =
      torch::stack({1 + kDeviation * noise, 3 + kDeviation * noise});
  EXPECT_TRUE(torch::allclose(x, expected, 0, 1e-4));
}

}  // namespace
}  // namespace lockstep
