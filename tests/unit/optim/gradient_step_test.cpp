#include "lockstep/optim/gradient_step.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor with_gradient(const Tensor& gradient) {
  auto parameter = torch::zeros_like(gradient).requires_grad_();
  parameter.mutable_grad() = gradient.clone();
  return parameter;
}

void expect_report(const optim::GradientReport& report, float norm,
                   float found_inf) {
  EXPECT_EQ(report.norm.dim(), 0);
  EXPECT_EQ(report.norm.scalar_type(), torch::kFloat);
  EXPECT_EQ(report.found_inf.scalar_type(), torch::kFloat);
  if (std::isfinite(norm)) {
    EXPECT_FLOAT_EQ(report.norm.item<float>(), norm);
  }
  EXPECT_EQ(report.found_inf.item<float>(), found_inf);
}

TEST(GradientStep, MeasuresTheNormOfAllGradients) {
  const auto a = with_gradient(torch::tensor({3.0f}));
  const auto b = with_gradient(torch::tensor({{4.0f, 0.0f}}));
  expect_report(optim::prepare_gradients({a, b}, {}, 0), 5, 0);
  EXPECT_EQ(a.grad()[0].item<float>(), 3);
}

TEST(GradientStep, ClipsButReportsTheNormBefore) {
  const auto a = with_gradient(torch::tensor({3.0f}));
  const auto b = with_gradient(torch::tensor({4.0f}));
  expect_report(optim::prepare_gradients({a, b}, {}, 1), 5, 0);
  EXPECT_NEAR(a.grad()[0].item<float>(), 0.6, 1e-6);
  EXPECT_NEAR(b.grad()[0].item<float>(), 0.8, 1e-6);
  // Small ones stay.
  const auto before = a.grad().clone();
  optim::prepare_gradients({a}, {}, 100);
  EXPECT_TRUE(torch::equal(a.grad(), before));
}

TEST(GradientStep, UnscalesEveryTypeInItsOwnPrecision) {
  const auto inverse = torch::tensor(1.0f / 3);
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    SCOPED_TRACE(c10::toString(dtype));
    const auto a = with_gradient(torch::full({9}, 0.7, dtype));
    const auto expected =
        (a.grad().to(torch::kDouble) * inverse.to(torch::kDouble)).to(dtype);
    expect_report(optim::prepare_gradients({a}, inverse, 0),
                  expected.norm().item<float>(), 0);
    EXPECT_TRUE(torch::equal(a.grad(), expected));
  }
}

TEST(GradientStep, FindsWhatIsNotFinite) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
      for (const double max_norm : {0.0, 1.0}) {
        const auto a = with_gradient(torch::ones({3}, dtype));
        const auto b = with_gradient(torch::full({3}, bad, dtype));
        expect_report(optim::prepare_gradients({a, b}, {}, max_norm), kInfinity,
                      1);
        const auto c = with_gradient(torch::ones({3}, dtype));
        c.grad()[1] = bad;
        expect_report(
            optim::prepare_gradients({a, c}, torch::tensor(0.5f), max_norm),
            kInfinity, 1);
      }
    }
  }
}

TEST(GradientStep, ANormThatOverflowsCounts) {
  const auto a = with_gradient(torch::full({100}, 3e38));
  expect_report(optim::prepare_gradients({a}, {}, 1), kInfinity, 1);
}

TEST(GradientStep, SkipsParametersWithoutGradient) {
  const auto none = torch::zeros({2}).requires_grad_();
  const auto a = with_gradient(torch::full({4}, 2.0));
  expect_report(optim::prepare_gradients({none, a}, torch::tensor(0.5f), 0), 2,
                0);
  EXPECT_FALSE(none.grad().defined());
  expect_report(optim::prepare_gradients({none}, torch::tensor(0.5f), 1), 0, 0);
  expect_report(optim::prepare_gradients({}, {}, 1), 0, 0);
}

TEST(GradientStep, ANegativeNormIsRefused) {
  EXPECT_THROW(optim::prepare_gradients({}, {}, -1), ConfigError);
  EXPECT_THROW(optim::prepare_gradients({}, {}, std::nan("")), ConfigError);
}

}  // namespace
}  // namespace lockstep
