// VGGT on a GPU: its kernels, its recorded launches, its halved weights.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/engine/precision.h"
#include "lockstep/kernels/qk_norm_rope.h"
#include "lockstep/kernels/token_norm.h"
#include "lockstep/models/vggt/frozen.h"
#include "lockstep/tensor/device.h"
#include "support/random_vggt.h"

namespace lockstep {
namespace {

using torch::Tensor;

// Before anything else: torch remembers whether CUDA was there when it was
// first asked.
c10::Device the_gpu() {
  return tensor::take_device(DeviceChoice::kCuda, 0, {});
}

double difference(const Tensor& ours, const Tensor& theirs) {
  const Tensor expected = theirs.cpu().to(at::kDouble);
  return (ours.cpu().to(at::kDouble) - expected).norm().item<double>() /
         expected.norm().item<double>();
}

struct Half {
  at::ScalarType type;
  double tolerance;  // Two roundings.
};
const std::vector<Half> kHalves = {{at::kBFloat16, 4e-3}, {at::kHalf, 1e-3}};

kernels::TokenNorm make_norm(int64_t size, at::ScalarType type) {
  return {.weight = (1 + 0.3 * torch::randn({size})).to(type),
          .bias = (0.3 * torch::randn({size})).to(type)};
}

kernels::TokenNorm on_gpu(const kernels::TokenNorm& norm) {
  const auto device = the_gpu();
  return {.weight = norm.weight.to(device),
          .bias = norm.bias.to(device),
          .eps = norm.eps};
}

TEST(GpuVggt, NormsOfTokensEqualThoseOfTheCpu) {
  const auto device = the_gpu();
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  for (const Half& half : kHalves) {
    for (const int64_t size : {4, 60, 1024, 2048}) {
      const kernels::TokenNorm norm = make_norm(size, half.type);
      const Tensor x = 3 + 2 * torch::randn({3, 37, size});
      const Tensor out = kernels::norm_tokens(x.to(device), on_gpu(norm));
      EXPECT_EQ(out.scalar_type(), half.type);
      EXPECT_LT(difference(out, kernels::norm_tokens(x, norm)), half.tolerance)
          << size;
    }
  }
}

TEST(GpuVggt, QkNormRopeEqualThoseOfTheCpu) {
  const auto device = the_gpu();
  const torch::NoGradGuard no_grad;
  torch::manual_seed(2);
  for (const Half& half : kHalves) {
    for (const int64_t size : {8, 24, 64, 128}) {
      const Tensor angles = torch::randn({7, 1, size / 4});
      const kernels::RopeTable table{
          .pairs = kernels::RopePairs::kAxialHalves,
          .cos = torch::cat({angles, angles, 2 * angles, 2 * angles}, 2).cos(),
          .sin =
              torch::cat({-angles, angles, -2 * angles, 2 * angles}, 2).sin()};
      const kernels::QkNorms norms{.queries = make_norm(size, half.type),
                                   .keys = make_norm(size, half.type)};
      const Tensor qkv = torch::randn({2, 21, 3, 5, size}).to(half.type);
      const Tensor moved = qkv.to(device);
      const kernels::QueriesAndKeys expected =
          kernels::qk_norm_rope(qkv, norms, table);
      const auto options = at::TensorOptions(device).dtype(at::kFloat);
      const kernels::QueriesAndKeys out = kernels::qk_norm_rope(
          moved, {.queries = on_gpu(norms.queries), .keys = on_gpu(norms.keys)},
          kernels::moved_to(table, options));
      EXPECT_LT(difference(out.queries, expected.queries), half.tolerance);
      EXPECT_LT(difference(out.keys, expected.keys), half.tolerance);
      EXPECT_TRUE(out.queries.is_alias_of(moved));
      EXPECT_TRUE(torch::equal(moved.select(2, 2).cpu(), qkv.select(2, 2)));
    }
  }
}

TEST(GpuVggt, ReplayedLaunchesGiveWhatCallsGive) {
  const auto device = the_gpu();
  torch::manual_seed(3);
  const auto net = testing::random_vggt(vggt::vggt_preset("vggt_tiny"));
  net->to(device);
  net->aggregator()->to(at::kBFloat16);
  const vggt::VggtWants wants{.points = true, .pose = true, .depth = true};
  vggt::FrozenVggt frozen(net, wants);
  const torch::NoGradGuard no_grad;
  // Two shapes by turns; other images at every call.
  for (int round = 0; round < 4; ++round) {
    for (const int64_t side : {28, 56}) {
      const Tensor images =
          torch::rand({2, 2, 3, side, side}, at::TensorOptions(device));
      const vggt::VggtGeometry ours = frozen.forward(images);
      const vggt::VggtGeometry theirs = net->forward(images, wants);
      EXPECT_LT(difference(ours.tokens, theirs.tokens), 1e-3) << round;
      EXPECT_LT(difference(ours.pose, theirs.pose), 1e-3) << round;
      EXPECT_LT(difference(ours.points, theirs.points), 1e-3) << round;
      EXPECT_LT(difference(ours.depth, theirs.depth), 1e-3) << round;
    }
  }
  EXPECT_EQ(frozen.graphs().num_recorded(), 2U);
}

// TF32 keeps 10 bits of a factor: what it changes is far above the roundings of
// two equal computations and far below a tenth.
TEST(GpuVggt, FrozenHeadsUseTf32InATrainingThatDoesNot) {
  const auto device = the_gpu();
  torch::manual_seed(5);
  vggt::VggtConfig config = vggt::vggt_preset("vggt_tiny");
  config.dpt_features = 128;
  config.dpt_hidden = 32;
  config.dpt_outs = {128, 128, 128, 128};
  const auto net = testing::random_vggt(config);
  net->to(device);
  const vggt::VggtWants wants{.points = true, .pose = false};
  vggt::FrozenVggt frozen(net, wants);
  const Tensor images =
      torch::rand({1, 2, 3, 56, 56}, at::TensorOptions(device));
  const torch::NoGradGuard no_grad;
  engine::apply_precision({.name = "fp32"});
  const Tensor exact = net->forward(images, wants).points;
  at::globalContext().setAllowTF32CuDNN(true);  // PyTorch's default.
  const Tensor rough = net->forward(images, wants).points;
  const double effect = difference(rough, exact);
  EXPECT_GT(effect, 2e-5);
  EXPECT_LT(effect, 0.1);
  engine::apply_precision({.name = "fp32"});
  for (int call = 0; call < 3; ++call) {  // The third replays.
    const Tensor points = frozen.forward(images).points;
    EXPECT_LT(difference(points, rough), effect / 4) << call;
  }
  EXPECT_EQ(frozen.graphs().num_recorded(), 1U);
  // The training's own convolutions are exact again.
  EXPECT_LT(difference(net->forward(images, wants).points, exact), effect / 4);
}

TEST(GpuVggt, HalvedWeightsStayCloseToFloat32OnTheCpu) {
  const auto device = the_gpu();
  torch::manual_seed(4);
  vggt::VggtConfig config = vggt::vggt_preset("vggt_tiny");
  config.width = 128;
  config.vit_depth = 12;
  config.depth = 12;
  const auto net = testing::random_vggt(config);
  const Tensor images = torch::rand({1, 2, 3, 42, 42});
  const torch::NoGradGuard no_grad;
  const vggt::VggtGeometry exact = net->forward(images);
  net->to(device);
  net->aggregator()->to(at::kBFloat16);
  const vggt::VggtGeometry rough = net->forward(images.to(device));
  EXPECT_LT(difference(rough.tokens, exact.tokens), 1e-2);
  EXPECT_LT(difference(rough.pose, exact.pose), 1e-2);
}

}  // namespace
}  // namespace lockstep
