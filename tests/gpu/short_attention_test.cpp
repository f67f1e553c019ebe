// Attention over few tokens against scaled_dot_product_attention().
#include "lockstep/kernels/short_attention.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fused_kernel_check.h"

namespace lockstep::kernels {
namespace {

using torch::Tensor;

struct AttentionCase {
  int64_t batch, count, heads;
  double spread = 1;  // Deviation of the inputs.
};

constexpr std::array kCases = {
    AttentionCase{2, 2, 1},    AttentionCase{1, 16, 2},
    AttentionCase{3, 37, 1},   AttentionCase{2, 197, 3},
    AttentionCase{2, 256, 12}, AttentionCase{4, 260, 6},
    AttentionCase{2, 288, 12}, AttentionCase{150, 33, 2},
    AttentionCase{1, 320, 1},  AttentionCase{2, 260, 2, 4.0}};

constexpr std::array kHalves = {torch::kHalf, torch::kBFloat16};

Tensor composed(const QueriesKeysValues& heads) {
  const auto by_head = [](const Tensor& part) { return part.transpose(1, 2); };
  return torch::scaled_dot_product_attention(
             by_head(heads.queries), by_head(heads.keys), by_head(heads.values))
      .transpose(1, 2);
}

void for_all_cases(
    const std::function<void(const AttentionCase&, torch::Dtype)>& check) {
  for (const torch::Dtype type : kHalves) {
    for (const AttentionCase& c : kCases) {
      SCOPED_TRACE(::testing::Message()
                   << type << " " << c.batch << " x " << c.count << " x "
                   << c.heads << ", spread " << c.spread);
      check(c, type);
    }
  }
}

// Weights and their gradients are rounded between products, as in every such
// kernel. That shows where scores are large and gradients of weights cancel.
double tolerance(const AttentionCase& c, torch::Dtype type) {
  return (c.spread > 1 ? 2 : 1) * rounding(type);
}

Tensor packed(const AttentionCase& c, torch::Dtype type) {
  return torch::randn({c.batch, c.count, 3, c.heads, 64})
      .mul(c.spread)
      .to(type);
}

// Takes a projection [B, N, 3, heads, size] and, if it is there, its bias.
Tensors attend_packed(const Tensors& in) {
  const LinearResult qkv{.out = in[0],
                         .bias = in.size() > 1 ? in[1] : Tensor()};
  EXPECT_EQ(has_short_attention(qkv), in[0].is_cuda());
  if (in[0].is_cuda()) return {short_attention(qkv)};
  const auto parts = with_bias_gradient(qkv).unbind(2);
  return {composed({parts[0], parts[1], parts[2]})};
}

TEST(GpuShortAttention, EqualsTheCompositionForPackedProjections) {
  seed(11);
  for_all_cases([](const AttentionCase& c, torch::Dtype type) {
    expect_as_on_cpu(attend_packed, {packed(c, type)}, type,
                     tolerance(c, type));
  });
}

// A bias that is not added gets its gradient. Those of keys cancel to what
// rounding leaves, and so do all over very few tokens.
TEST(GpuShortAttention, SumsTheGradientOfABias) {
  seed(12);
  for_all_cases([](const AttentionCase& c, torch::Dtype type) {
    if (c.count < 16) return;
    expect_as_on_cpu(attend_packed,
                     {packed(c, type), torch::zeros({3 * c.heads * 64})}, type,
                     3 * rounding(type));
  });
}

// Queries and keys as QK-norm leaves them, values as part of a projection.
TEST(GpuShortAttention, EqualsTheCompositionForSeparateHeads) {
  seed(13);
  const auto operation = [](const Tensors& in) -> Tensors {
    const QueriesKeysValues heads{
        .queries = in[0], .keys = in[1], .values = in[2].select(2, 2)};
    EXPECT_EQ(has_short_attention(heads), in[0].is_cuda());
    const Tensor out =
        in[0].is_cuda() ? short_attention(heads) : composed(heads);
    // Its gradient then has the strides of a transposed tensor.
    return {out.transpose(1, 2)};
  };
  for_all_cases([&](const AttentionCase& c, torch::Dtype type) {
    const auto heads = [&] { return packed(c, type).select(2, 0).clone(); };
    expect_as_on_cpu(operation, {heads(), heads(), packed(c, type)}, type,
                     tolerance(c, type));
  });
}

TEST(GpuShortAttention, LeavesOtherShapesToOthers) {
  seed(14);
  const auto fits = [](at::IntArrayRef sizes, torch::Dtype type) {
    const Tensor heads = torch::zeros(sizes, torch::dtype(type).device(gpu()));
    return has_short_attention(
        {.queries = heads, .keys = heads, .values = heads});
  };
  EXPECT_TRUE(fits({2, 320, 1, 64}, torch::kHalf));
  EXPECT_FALSE(fits({2, 321, 1, 64}, torch::kHalf));
  EXPECT_FALSE(fits({2, 260, 1, 32}, torch::kHalf));
  EXPECT_FALSE(fits({2, 260, 1, 64}, torch::kFloat));
  EXPECT_FALSE(fits({0, 260, 1, 64}, torch::kHalf));
  const Tensor queries =
      torch::zeros({2, 8, 1, 64}, torch::dtype(torch::kHalf).device(gpu()));
  const Tensor keys =
      torch::zeros({2, 9, 1, 64}, torch::dtype(torch::kHalf).device(gpu()));
  EXPECT_FALSE(
      has_short_attention({.queries = queries, .keys = keys, .values = keys}));
}

}  // namespace
}  // namespace lockstep::kernels
