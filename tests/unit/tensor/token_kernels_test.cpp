// Norms of tokens and QK-norm with rope, where there is no kernel for them.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/kernels/qk_norm_rope.h"
#include "lockstep/kernels/token_norm.h"

namespace lockstep {
namespace {

using torch::Tensor;

kernels::TokenNorm make_norm(int64_t size, at::ScalarType type) {
  return {.weight = (1 + 0.3 * torch::randn({size})).to(type),
          .bias = (0.3 * torch::randn({size})).to(type),
          .eps = 1e-3};
}

Tensor normed(const Tensor& x, const kernels::TokenNorm& norm) {
  const Tensor wide = x.to(at::kDouble);
  const Tensor centred = wide - wide.mean(-1, /*keepdim=*/true);
  const Tensor variance = centred.square().mean(-1, /*keepdim=*/true);
  return centred / (variance + norm.eps).sqrt() * norm.weight + norm.bias;
}

TEST(TokenNorm, ComputesWithTheBitsOfTheTokensAndAnswersInTheTypeOfTheWeights) {
  torch::manual_seed(1);
  // Far from zero: bfloat16 would leave nothing of what differs.
  const Tensor x = 300 + torch::randn({3, 5, 24});
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const kernels::TokenNorm norm = make_norm(24, type);
    const Tensor out = kernels::norm_tokens(x, norm);
    EXPECT_EQ(out.scalar_type(), type);
    EXPECT_LT(
        (out.to(at::kDouble) - normed(x, norm)).abs().max().item<double>(),
        type == at::kFloat ? 1e-3 : 2e-2);
  }
}

// Every pair of channels by itself, with sines and cosines.
Tensor rotated(const Tensor& x, const Tensor& angles) {
  const int64_t quarter = x.size(-1) / 4;
  Tensor out = x.clone();
  for (int64_t token = 0; token < x.size(1); ++token) {
    for (int64_t pair = 0; pair < 2 * quarter; ++pair) {
      const int64_t a = pair / quarter * 2 * quarter + pair % quarter;
      const int64_t b = a + quarter;
      const double angle = angles[token % angles.size(0)][pair].item<double>();
      const Tensor first = x.select(1, token).select(2, a);
      const Tensor second = x.select(1, token).select(2, b);
      out.select(1, token).select(2, a).copy_(first * std::cos(angle) -
                                              second * std::sin(angle));
      out.select(1, token).select(2, b).copy_(second * std::cos(angle) +
                                              first * std::sin(angle));
    }
  }
  return out;
}

kernels::RopeTable axial_table(const Tensor& angles) {
  const auto halves = angles.chunk(2, 1);
  const Tensor& u = halves[0];
  const Tensor& v = halves[1];
  return {.pairs = kernels::RopePairs::kAxialHalves,
          .cos = torch::cat({u, u, v, v}, 1).cos().unsqueeze(1),
          .sin = torch::cat({-u, u, -v, v}, 1).sin().unsqueeze(1)};
}

TEST(QkNormRope, QueriesAndKeysAreNormalisedAndRotatedByTheirPositions) {
  torch::manual_seed(2);
  const Tensor angles = 3 * torch::randn({3, 4}, at::kDouble);
  const Tensor qkv = torch::randn({2, 6, 3, 2, 8}, at::kDouble);
  const Tensor before = qkv.clone();
  const kernels::QkNorms norms{.queries = make_norm(8, at::kDouble),
                               .keys = make_norm(8, at::kDouble)};
  const kernels::QueriesAndKeys out =
      kernels::qk_norm_rope(qkv, norms, axial_table(angles));
  EXPECT_TRUE(torch::allclose(
      out.queries, rotated(normed(before.select(2, 0), norms.queries), angles),
      1e-10, 1e-12));
  EXPECT_TRUE(torch::allclose(
      out.keys, rotated(normed(before.select(2, 1), norms.keys), angles), 1e-10,
      1e-12));
  EXPECT_TRUE(torch::equal(qkv.select(2, 2), before.select(2, 2)));
}

}  // namespace
}  // namespace lockstep
