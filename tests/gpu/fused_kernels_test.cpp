// Fused kernels against the composition of ATen operations that they replace.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fused_kernel_check.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/adaln_residual.h"
#include "lockstep/kernels/linear_product.h"
#include "lockstep/kernels/qk_rms_rope.h"
#include "lockstep/kernels/qkv_heads.h"

namespace lockstep::kernels {
namespace {

using torch::Tensor;

struct AdaLnCase {
  int64_t batch = 2;
  int64_t count = 37;
  int64_t size = 384;
  NormKind kind = NormKind::kRms;
  bool has_branch = true;
  bool has_bias = true;
  bool has_gate = true;
  bool has_modulation = true;
  bool has_scalar_weight = false;
};

// Gate, shift and scale are parts of wider rows, as in a model.
void expect_adaln(const AdaLnCase& c, torch::Dtype type) {
  const auto floats = [](at::IntArrayRef sizes) { return torch::randn(sizes); };
  const Tensors inputs{
      floats({c.batch, c.count, c.size}),
      c.has_branch ? floats({c.batch, c.count, c.size}).to(type) : Tensor(),
      c.has_branch && c.has_bias ? floats({c.size}) : Tensor(),
      floats({c.batch, 3 * c.size}).to(type),
      floats({c.has_scalar_weight ? 1 : c.size}),
      c.kind == NormKind::kLayer ? floats({c.size}) : Tensor()};
  const auto operation = [&](const Tensors& in) -> Tensors {
    const auto part = in[3].chunk(3, 1);
    const AdaLnResult result = adaln_residual(
        in[0],
        {.out = in[1],
         .bias = in[2],
         .gate = c.has_branch && c.has_gate ? part[0] : Tensor()},
        {.kind = c.kind, .weight = in[4], .bias = in[5], .eps = 1e-5},
        {.shift = c.has_modulation ? part[1] : Tensor(),
         .scale = c.has_modulation ? part[2] : Tensor()});
    // The sum of x alone is x.
    if (!c.has_branch) return {result.normed};
    return {result.normed, result.sum};
  };
  SCOPED_TRACE(::testing::Message()
               << c.batch << " x " << c.count << " x " << c.size << ", kind "
               << static_cast<int>(c.kind) << ", branch " << c.has_branch
               << ", " << type);
  const bool has_type = c.has_branch || c.has_modulation;
  expect_as_on_cpu(operation, inputs, has_type ? type : torch::kFloat);
}

TEST(GpuAdaLnResidual, EqualsTheCompositionInAllSizes) {
  seed(1);
  for (const torch::Dtype type : kTypes) {
    for (const int64_t size : {8, 96, 384, 512, 768, 1024, 1280, 2048, 3072}) {
      expect_adaln({.size = size}, type);
    }
    expect_adaln({.batch = 1, .count = 1}, type);
    expect_adaln({.batch = 40, .count = 7}, type);
    expect_adaln({.batch = 3, .count = 260}, type);
  }
}

TEST(GpuAdaLnResidual, EveryPartMayBeMissing) {
  seed(2);
  for (const torch::Dtype type : kTypes) {
    for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
      expect_adaln({.kind = kind, .has_branch = false}, type);
      expect_adaln({.kind = kind, .has_bias = false}, type);
      expect_adaln({.kind = kind, .has_gate = false}, type);
      expect_adaln({.kind = kind, .has_modulation = false}, type);
    }
    expect_adaln({.has_scalar_weight = true}, type);
  }
}

TEST(GpuLinearActivation, EqualsTheComposition) {
  seed(3);
  for (const torch::Dtype type : kTypes) {
    for (const ActivationKind kind :
         {ActivationKind::kGelu, ActivationKind::kGeluTanh,
          ActivationKind::kSilu, ActivationKind::kSwiGlu}) {
      for (const int64_t rows : {1, 37, 5000}) {
        SCOPED_TRACE(::testing::Message()
                     << type << " kind " << static_cast<int>(kind) << " rows "
                     << rows);
        // A weight of ones and zeros copies x: products round nothing.
        const Tensors inputs{torch::randn({rows, 48}).to(type),
                             torch::eye(48).to(type), torch::randn({48})};
        expect_as_on_cpu(
            [kind](const Tensors& in) -> Tensors {
              return {linear_activation(in[0], in[1], in[2], kind)};
            },
            inputs, type);
      }
    }
  }
}

struct HeadsCase {
  int64_t batch, count, heads, size;
};
constexpr std::array kHeadsCases = {
    HeadsCase{2, 9, 3, 64},    HeadsCase{1, 1, 1, 32},
    HeadsCase{3, 50, 2, 128},  HeadsCase{4, 288, 12, 64},
    HeadsCase{16, 260, 6, 64}, HeadsCase{2, 700, 5, 32}};

Tensor packed_heads(const HeadsCase& c, torch::Dtype type) {
  return torch::randn({c.batch, c.count, 3, c.heads, c.size}).to(type);
}

// In a bias that is not added but gets its gradient.
Tensor bias_of(const HeadsCase& c) {
  return torch::zeros({3 * c.heads * c.size});
}

TEST(GpuQkRmsRope, EqualsTheComposition) {
  seed(4);
  for (const torch::Dtype type : kTypes) {
    for (const HeadsCase& c : kHeadsCases) {
      SCOPED_TRACE(::testing::Message() << type << " size " << c.size);
      const Tensor angles = torch::randn({c.count, 1, c.size / 2});
      const auto heads_of = [&](const Tensors& in, const Tensor& bias) {
        const auto real = in[0].is_cuda() ? torch::kFloat : torch::kDouble;
        const Tensor angle = angles.to(in[0].device(), real);
        const RopeTable table{
            .pairs = RopePairs::kInterleaved,
            .complex = torch::polar(torch::ones_like(angle), angle)};
        const QueriesKeysValues heads =
            qk_rms_rope({.out = in[0], .bias = bias},
                        {.queries = in[1], .keys = in[2]}, table);
        return Tensors{heads.queries, heads.keys, heads.values};
      };
      Tensors inputs{packed_heads(c, type), torch::randn({c.size}),
                     torch::randn({c.size})};
      expect_as_on_cpu(
          [&](const Tensors& in) { return heads_of(in, Tensor()); }, inputs,
          type);
      inputs.push_back(bias_of(c));
      expect_as_on_cpu([&](const Tensors& in) { return heads_of(in, in[3]); },
                       inputs, type);
    }
  }
}

TEST(GpuQkvHeads, GradientsArePackedAndSummed) {
  seed(5);
  for (const torch::Dtype type : kTypes) {
    for (const HeadsCase& c : kHeadsCases) {
      SCOPED_TRACE(::testing::Message() << type << " size " << c.size);
      const auto heads_of = [](const Tensor& qkv, const Tensor& bias) {
        const QueriesKeysValues heads = qkv_heads({.out = qkv, .bias = bias});
        // Strides as attention's backward leaves them.
        return Tensors{heads.queries.transpose(1, 2), heads.keys,
                       heads.values.transpose(1, 2).contiguous()};
      };
      expect_as_on_cpu(
          [&](const Tensors& in) { return heads_of(in[0], Tensor()); },
          {packed_heads(c, type)}, type);
      expect_as_on_cpu(
          [&](const Tensors& in) { return heads_of(in[0], in[1]); },
          {packed_heads(c, type), bias_of(c)}, type);
    }
  }
}

struct ProductCase {
  int64_t rows, in, out;
};

// Chosen or not, an algorithm computes the same product.
TEST(GpuLinearProduct, EveryChoiceEqualsTheComposition) {
  seed(6);
  const c10::Device device = gpu();
  for (const torch::Dtype type : {torch::kHalf, torch::kBFloat16}) {
    for (const ProductCase& c :
         {ProductCase{1, 8, 16}, ProductCase{37, 384, 1152},
          ProductCase{4160, 384, 1536}, ProductCase{520, 1536, 384},
          ProductCase{33, 20, 12}}) {
      SCOPED_TRACE(::testing::Message() << type << " " << c.rows << " x "
                                        << c.in << " -> " << c.out);
      const Tensor x = torch::randn({c.rows, c.in}).to(type);
      const Tensor weight = torch::randn({c.out, c.in}).to(type);
      const Tensor bias = torch::randn({c.out}).to(type);
      const Tensor d_out = torch::randn({c.rows, c.out}).to(type);
      const auto wide = [](const Tensor& t) { return t.to(torch::kDouble); };
      const auto on = [&](const Tensor& t) { return t.to(device); };
      for (const bool is_timed : {false, true}) {
        const auto algorithms = new_product_algorithms(device);
        if (is_timed) algorithms->start_timing();
        const Tensor forward =
            linear_forward(on(x), on(weight), on(bias), algorithms.get());
        const Tensor d_x =
            linear_input_gradient(on(d_out), on(weight), algorithms.get());
        const Tensor d_weight =
            linear_weight_gradient(on(d_out), on(x), algorithms.get());
        EXPECT_LT(relative_error(forward, torch::linear(wide(x), wide(weight),
                                                        wide(bias))),
                  rounding(type));
        EXPECT_LT(relative_error(d_x, wide(d_out).mm(wide(weight))),
                  rounding(type));
        EXPECT_LT(relative_error(d_weight, wide(d_out).t().mm(wide(x))), 1e-5);
        EXPECT_EQ(d_weight.scalar_type(), torch::kFloat);
        // What was timed is taken by others, and gives the same bits.
        const auto copies = new_product_algorithms(device);
        copies->take(algorithms->text());
        EXPECT_EQ(copies->text(), algorithms->text());
        EXPECT_TRUE(forward.equal(
            linear_forward(on(x), on(weight), on(bias), copies.get())));
      }
    }
  }
}

// As a damaged or hostile checkpoint may hold it.
TEST(GpuLinearProduct, AlgorithmsThatCannotBeAreReplaced) {
  seed(7);
  const c10::Device device = gpu();
  const Tensor x = torch::randn({64, 384}).to(device, torch::kBFloat16);
  const Tensor weight = torch::randn({512, 384}).to(device, torch::kBFloat16);
  const auto timed = new_product_algorithms(device);
  timed->start_timing();
  linear_forward(x, weight, {}, timed.get());
  std::string text = timed->text();
  const size_t algorithm = text.find("0 64 384 512 0 2 ");
  ASSERT_NE(algorithm, std::string::npos) << text;
  text = text.substr(0, algorithm) + "0 64 384 512 0 2 1 2 3 4 5 6 7 8\n";
  const auto damaged = new_product_algorithms(device);
  damaged->take(text);
  const Tensor out = linear_forward(x, weight, {}, damaged.get());
  EXPECT_LT(relative_error(out, torch::linear(x.cpu().to(torch::kDouble),
                                              weight.cpu().to(torch::kDouble))),
            rounding(torch::kBFloat16));
}

}  // namespace
}  // namespace lockstep::kernels
