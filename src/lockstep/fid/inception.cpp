#include "lockstep/fid/inception.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace lockstep::fid {
namespace {

constexpr int64_t kInceptionSide = 299;

at::Tensor average(const at::Tensor& x) {
  return at::avg_pool2d(x, {3, 3}, {1, 1}, {1, 1}, /*ceil_mode=*/false,
                        /*count_include_pad=*/false);
}

at::Tensor halved(const at::Tensor& x) {
  return at::max_pool2d(x, {3, 3}, {2, 2});
}

// Between which pixels a result lies, in one direction.
struct Places {
  at::Tensor low;
  at::Tensor high;
  at::Tensor part;  // Fraction of the way from low to high.
};

// TensorFlow 1 takes position i * size / kInceptionSide, without half-pixel
// centres, in float32.
Places places(int64_t size, const c10::Device& device) {
  const auto scale =
      static_cast<float>(static_cast<double>(size) / double{kInceptionSide});
  const auto numbers = at::TensorOptions(at::kFloat).device(device);
  const at::Tensor position = at::arange(kInceptionSide, numbers) * scale;
  const at::Tensor low = position.to(at::kLong);
  return {.low = low,
          .high = (low + 1).clamp_max(size - 1),
          .part = position - low.to(at::kFloat)};
}

at::Tensor resize_as_tensorflow(const at::Tensor& images) {
  const Places x = places(images.size(3), images.device());
  const Places y = places(images.size(2), images.device());
  const at::Tensor left = images.index_select(3, x.low);
  const at::Tensor right = images.index_select(3, x.high);
  const at::Tensor rows = left + (right - left) * x.part;
  const at::Tensor upper = rows.index_select(2, y.low);
  const at::Tensor lower = rows.index_select(2, y.high);
  return upper + (lower - upper) * y.part.view({kInceptionSide, 1});
}

}  // namespace

Inception::Inception(const std::filesystem::path& weights,
                     FidConvention convention)
    : convention_(convention), weights_(read_inception_weights(weights)) {}

std::string Inception::id() const {
  const char* convention = convention_ == FidConvention::kPytorchFid
                               ? "pytorch-fid"
                               : "torch-fidelity";
  return fmt::format("inception-v3/{}/{:08x}", convention, weights_.checksum);
}

void Inception::move_weights(const c10::Device& device) {
  for (auto& [name, conv] : weights_.convs) {
    conv.weight = conv.weight.to(device);
    conv.bias = conv.bias.to(device);
  }
}

at::Tensor Inception::prepare(const at::Tensor& levels) const {
  if (convention_ == FidConvention::kTorchFidelity) {
    return (resize_as_tensorflow(levels) - 128) / 128;
  }
  return 2 * at::upsample_bilinear2d(levels / 255,
                                     {kInceptionSide, kInceptionSide},
                                     /*align_corners=*/false) -
         1;
}

at::Tensor Inception::features_of(const at::Tensor& levels) const {
  at::Tensor x = chain("", {"Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3"},
                       prepare(levels));
  x = chain("", {"Conv2d_3b_1x1", "Conv2d_4a_3x3"}, halved(x));
  x = block_a("Mixed_5b.", halved(x));
  x = block_a("Mixed_5c.", x);
  x = block_a("Mixed_5d.", x);
  x = block_b("Mixed_6a.", x);
  x = block_c("Mixed_6b.", x);
  x = block_c("Mixed_6c.", x);
  x = block_c("Mixed_6d.", x);
  x = block_c("Mixed_6e.", x);
  x = block_d("Mixed_7a.", x);
  x = block_e("Mixed_7b.", x, average(x));
  x = block_e("Mixed_7c.", x, at::max_pool2d(x, {3, 3}, {1, 1}, {1, 1}));
  return x.mean({2, 3});
}

at::Tensor Inception::chain(std::string_view block, Names layers,
                            at::Tensor x) const {
  for (const std::string_view name : layers) {
    const InceptionConv& conv =
        weights_.convs.at(std::string(block) + std::string(name));
    const InceptionLayer& layer = conv.layer;
    x = at::conv2d(x, conv.weight, conv.bias, {layer.stride, layer.stride},
                   layer.padding)
            .relu_();
  }
  return x;
}

at::Tensor Inception::block_a(std::string_view block,
                              const at::Tensor& x) const {
  return at::cat(
      {chain(block, {"branch1x1"}, x),
       chain(block, {"branch5x5_1", "branch5x5_2"}, x),
       chain(block, {"branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"}, x),
       chain(block, {"branch_pool"}, average(x))},
      1);
}

at::Tensor Inception::block_b(std::string_view block,
                              const at::Tensor& x) const {
  return at::cat(
      {chain(block, {"branch3x3"}, x),
       chain(block, {"branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"}, x),
       halved(x)},
      1);
}

at::Tensor Inception::block_c(std::string_view block,
                              const at::Tensor& x) const {
  return at::cat(
      {chain(block, {"branch1x1"}, x),
       chain(block, {"branch7x7_1", "branch7x7_2", "branch7x7_3"}, x),
       chain(block,
             {"branch7x7dbl_1", "branch7x7dbl_2", "branch7x7dbl_3",
              "branch7x7dbl_4", "branch7x7dbl_5"},
             x),
       chain(block, {"branch_pool"}, average(x))},
      1);
}

at::Tensor Inception::block_d(std::string_view block,
                              const at::Tensor& x) const {
  return at::cat({chain(block, {"branch3x3_1", "branch3x3_2"}, x),
                  chain(block,
                        {"branch7x7x3_1", "branch7x7x3_2", "branch7x7x3_3",
                         "branch7x7x3_4"},
                        x),
                  halved(x)},
                 1);
}

at::Tensor Inception::block_e(std::string_view block, const at::Tensor& x,
                              const at::Tensor& pooled) const {
  const at::Tensor middle = chain(block, {"branch3x3_1"}, x);
  const at::Tensor deep = chain(block, {"branch3x3dbl_1", "branch3x3dbl_2"}, x);
  return at::cat(
      {chain(block, {"branch1x1"}, x), chain(block, {"branch3x3_2a"}, middle),
       chain(block, {"branch3x3_2b"}, middle),
       chain(block, {"branch3x3dbl_3a"}, deep),
       chain(block, {"branch3x3dbl_3b"}, deep),
       chain(block, {"branch_pool"}, pooled)},
      1);
}

}  // namespace lockstep::fid
