#include "lockstep/fid/builtin_features.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/random.h"

namespace lockstep::fid {
namespace {

constexpr int64_t kBuiltinSide = 32;
constexpr uint64_t kSeed = 20151205;
constexpr int64_t kKernel = 3;
constexpr int64_t kKernelArea = kKernel * kKernel;
constexpr double kSlope = 0.2;
// Edges are weaker than areas: so they count as much.
constexpr double kEdgeGain = 4;
// Means, variances and covariances of three colours.
constexpr int64_t kColourMoments = 9;

struct Layer {
  int64_t in;
  int64_t out;
  int64_t stride;
};

constexpr std::array<Layer, 3> kLayers = {{
    {.in = 3, .out = 48, .stride = 1},
    {.in = 48, .out = 64, .stride = 2},
    {.in = 64, .out = 64, .stride = 2},
}};

enum class FilterKind { kAny, kEdges };

// Writes one kKernel x kKernel filter; edge filters do not respond to areas of
// one colour.
void draw_filter(RandomStream& draw, FilterKind kind, double scale,
                 float* filter) {
  std::array<double, kKernelArea> values = {};
  double mean = 0;
  for (double& value : values) {
    value = draw.normal();
    mean += value / kKernelArea;
  }
  const bool is_edge = kind == FilterKind::kEdges;
  for (int64_t i = 0; i < kKernelArea; ++i) {
    const double value = values[static_cast<size_t>(i)];
    filter[i] = static_cast<float>(is_edge ? (value - mean) * scale * kEdgeGain
                                           : value * scale);
  }
}

at::Tensor draw_weights(const Layer& layer, uint64_t stream) {
  RandomStream draw(kSeed, stream);
  const double scale =
      std::sqrt(2.0 / static_cast<double>(layer.in * kKernelArea));
  at::Tensor weights =
      at::empty({layer.out, layer.in, kKernel, kKernel}, at::kFloat);
  auto* values = weights.mutable_data_ptr<float>();
  for (int64_t out = 0; out < layer.out; ++out) {
    // Half of the first layer sees edges only.
    const bool is_edge = stream == 0 && out % 2 == 1;
    const FilterKind kind = is_edge ? FilterKind::kEdges : FilterKind::kAny;
    for (int64_t in = 0; in < layer.in; ++in) {
      draw_filter(draw, kind, scale, values);
      values += kKernelArea;
    }
  }
  return weights;
}

// Averages of areas where an image is larger, bilinear where it is smaller.
at::Tensor at_fixed_size(const at::Tensor& images) {
  const int64_t height = std::min(images.size(2), kBuiltinSide);
  const int64_t width = std::min(images.size(3), kBuiltinSide);
  const at::Tensor shrunk = at::adaptive_avg_pool2d(images, {height, width});
  return at::upsample_bilinear2d(shrunk, {kBuiltinSide, kBuiltinSide},
                                 /*align_corners=*/false);
}

at::Tensor colour_moments(const at::Tensor& images) {
  const at::Tensor pixels = images.flatten(2);
  const at::Tensor mean = pixels.mean(2);
  const at::Tensor centred = pixels - mean.unsqueeze(2);
  const at::Tensor next = centred.roll(1, 1);
  return at::cat({mean, centred.square().mean(2), (centred * next).mean(2)}, 1);
}

}  // namespace

BuiltinFeatures::BuiltinFeatures() {
  for (size_t i = 0; i < kLayers.size(); ++i) {
    weights_.push_back(draw_weights(kLayers[i], i));
  }
}

int64_t BuiltinFeatures::width() const {
  int64_t width = kColourMoments + kLayers.back().out;
  for (const Layer& layer : kLayers) width += layer.out;
  return width;
}

void BuiltinFeatures::move_weights(const c10::Device& device) {
  for (at::Tensor& weights : weights_) weights = weights.to(device);
}

at::Tensor BuiltinFeatures::features_of(const at::Tensor& levels) const {
  at::Tensor x = at_fixed_size(levels / 127.5 - 1);
  std::vector<at::Tensor> parts = {colour_moments(x)};
  for (size_t i = 0; i < kLayers.size(); ++i) {
    const int64_t stride = kLayers[i].stride;
    x = at::conv2d(x, weights_[i], /*bias=*/{}, {stride, stride},
                   {kKernel / 2, kKernel / 2});
    x = at::leaky_relu(x, kSlope);
    parts.push_back(x.mean({2, 3}));
  }
  parts.push_back(x.amax({2, 3}));
  return at::cat(parts, 1);
}

}  // namespace lockstep::fid
