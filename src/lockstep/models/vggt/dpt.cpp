#include "lockstep/models/vggt/dpt.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

namespace lockstep::vggt {
namespace {

constexpr int64_t kImagesAtOnce = 8;

nn::ConvConfig conv3x3(int64_t in, int64_t out) {
  return {.in = in, .out = out, .kernel = 3, .padding = 1};
}

at::Tensor enlarged(const at::Tensor& maps, const GridSize& size) {
  return at::upsample_bilinear2d(maps, {size.height, size.width},
                                 /*align_corners=*/true);
}

GridSize size_of(const at::Tensor& maps) {
  return {maps.size(2), maps.size(3)};
}

nn::Conv2d add_conv(torch::nn::Module& module, const std::string& name,
                    const nn::ConvConfig& config) {
  return module.register_module(name, nn::Conv2d(config));
}

std::shared_ptr<torch::nn::Module> add_group(torch::nn::Module& module,
                                             const std::string& name) {
  return module.register_module(name, std::make_shared<torch::nn::Module>());
}

}  // namespace

// relu(x) + conv2(relu(conv1(relu(x)))): weights were trained with a ReLU that
// overwrote x, so that x itself is not what is added.
class VggtDptHead::ResidualUnit : public torch::nn::Module {
 public:
  explicit ResidualUnit(int64_t features)
      : conv1_(add_conv(*this, "conv1", conv3x3(features, features))),
        conv2_(add_conv(*this, "conv2", conv3x3(features, features))) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor rectified = at::relu(x);
    return conv2_->forward(conv1_->forward(rectified).relu_()).add_(rectified);
  }

 private:
  nn::Conv2d conv1_;
  nn::Conv2d conv2_;
};

class VggtDptHead::FusionBlock : public torch::nn::Module {
 public:
  enum class Place { kCoarsest, kOther };

  FusionBlock(int64_t features, Place place) {
    out_conv_ = add_conv(*this, "out_conv", {.in = features, .out = features});
    if (place == Place::kOther) {
      unit1_ = register_module("resConfUnit1",
                               std::make_shared<ResidualUnit>(features));
    }
    unit2_ = register_module("resConfUnit2",
                             std::make_shared<ResidualUnit>(features));
  }

  // coarser: output of the previous block; undefined for the coarsest.
  at::Tensor forward(const at::Tensor& maps, const at::Tensor& coarser,
                     const GridSize& size) {
    const at::Tensor joined =
        unit1_ ? unit1_->forward(maps).add_(coarser) : maps;
    // A 1 x 1 convolution and an interpolation commute; in this order the
    // convolution processes fewer pixels.
    return enlarged(out_conv_->forward(unit2_->forward(joined)), size);
  }

 private:
  nn::Conv2d out_conv_{nullptr};
  std::shared_ptr<ResidualUnit> unit1_;
  std::shared_ptr<ResidualUnit> unit2_;
};

VggtDptHead::VggtDptHead(const VggtConfig& config, DptValues kind)
    : config_(config), kind_(kind) {
  norm_ = register_module("norm", nn::LayerNorm(2 * config.width));
  const auto projects = add_group(*this, "projects");
  for (size_t i = 0; i < projects_.size(); ++i) {
    projects_[i] =
        add_conv(*projects, std::to_string(i),
                 {.in = 2 * config.width, .out = config.dpt_outs[i]});
  }
  const auto resize = add_group(*this, "resize_layers");
  const auto& outs = config.dpt_outs;
  enlarge4_ = resize->register_module(
      "0", nn::ConvTranspose2d(nn::ConvConfig{
               .in = outs[0], .out = outs[0], .kernel = 4, .stride = 4}));
  enlarge2_ = resize->register_module(
      "1", nn::ConvTranspose2d(nn::ConvConfig{
               .in = outs[1], .out = outs[1], .kernel = 2, .stride = 2}));
  halve_ = add_conv(
      *resize, "3",
      {.in = outs[3], .out = outs[3], .kernel = 3, .stride = 2, .padding = 1});
  register_scratch();
}

void VggtDptHead::register_scratch() {
  const int64_t features = config_.dpt_features;
  const auto scratch = add_group(*this, "scratch");
  for (size_t i = 0; i < narrow_.size(); ++i) {
    nn::ConvConfig conv = conv3x3(config_.dpt_outs[i], features);
    conv.bias = nn::Bias::kNo;
    narrow_[i] =
        add_conv(*scratch, "layer" + std::to_string(i + 1) + "_rn", conv);
  }
  for (size_t i = 0; i < fusion_.size(); ++i) {
    fusion_[i] = scratch->register_module(
        "refinenet" + std::to_string(i + 1),
        std::make_shared<FusionBlock>(
            features, i + 1 == fusion_.size() ? FusionBlock::Place::kCoarsest
                                              : FusionBlock::Place::kOther));
  }
  output1_ =
      add_conv(*scratch, "output_conv1", conv3x3(features, features / 2));
  const auto output2 = add_group(*scratch, "output_conv2");
  output2_ = add_conv(*output2, "0", conv3x3(features / 2, config_.dpt_hidden));
  output3_ = add_conv(
      *output2, "2",
      {.in = config_.dpt_hidden, .out = kind_ == DptValues::kPoints ? 4 : 2});
}

void VggtDptHead::add_waves(const at::Tensor& maps, const GridSize& image) {
  const int64_t channels = maps.size(1);
  const MapWaves& waves =
      waves_.get({.size = size_of(maps),
                  .channels = channels,
                  .aspect = {image.height, image.width},
                  .dtype = maps.scalar_type(),
                  .device = maps.device()},
                 [&] {
                   return make_map_waves(size_of(maps), channels,
                                         static_cast<double>(image.width) /
                                             static_cast<double>(image.height));
                 });
  add_map_waves(maps, waves);
}

at::Tensor VggtDptHead::layer_maps(size_t index, const at::Tensor& tokens,
                                   const GridSize& image) {
  // Tokens in row order are channels-last maps, the fastest layout for
  // convolutions.
  const at::Tensor maps =
      norm_->forward(tokens)
          .view({tokens.size(0), image.height / config_.patch,
                 image.width / config_.patch, tokens.size(2)})
          .permute({0, 3, 1, 2});
  const at::Tensor projected = projects_[index]->forward(maps);
  add_waves(projected, image);
  switch (index) {
    case 0: return enlarge4_->forward(projected);
    case 1: return enlarge2_->forward(projected);
    case 2: return projected;
    default: return halve_->forward(projected);
  }
}

at::Tensor VggtDptHead::draw(const std::array<at::Tensor, 4>& tokens,
                             const GridSize& image) {
  std::array<at::Tensor, 4> maps;
  for (size_t i = 0; i < maps.size(); ++i) {
    maps[i] = narrow_[i]->forward(layer_maps(i, tokens[i], image));
  }
  at::Tensor x = fusion_[3]->forward(maps[3], {}, size_of(maps[2]));
  x = fusion_[2]->forward(maps[2], x, size_of(maps[1]));
  x = fusion_[1]->forward(maps[1], x, size_of(maps[0]));
  x = fusion_[0]->forward(maps[0], x,
                          {2 * maps[0].size(2), 2 * maps[0].size(3)});
  x = enlarged(output1_->forward(x), image);
  add_waves(x, image);
  x = output3_->forward(output2_->forward(x).relu_());
  return x.permute({0, 2, 3, 1});
}

DptMaps VggtDptHead::forward(const std::array<VggtLayer, 4>& layers,
                             const GridSize& image) {
  const auto shape = layers[0].frame.sizes();
  const int64_t batch = shape[0];
  const int64_t num_views = shape[1];
  const at::ScalarType dtype = parameters()[0].scalar_type();
  std::vector<at::Tensor> drawn;
  for (int64_t begin = 0; begin < batch * num_views; begin += kImagesAtOnce) {
    const auto patches = [&](const at::Tensor& tokens) {
      return tokens.flatten(0, 1)
          .slice(0, begin, begin + kImagesAtOnce)
          .slice(1, num_special_tokens(config_));
    };
    std::array<at::Tensor, 4> tokens;
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] =
          at::cat({patches(layers[i].frame), patches(layers[i].global)}, 2)
              .to(dtype);
    }
    drawn.push_back(draw(tokens, image));
  }
  const at::Tensor all = drawn.size() == 1 ? drawn[0] : at::cat(drawn);
  const at::Tensor maps = all.unflatten(0, {batch, num_views});
  const at::Tensor values = maps.slice(4, 0, -1);
  return {.values = kind_ == DptValues::kPoints
                        ? at::copysign(values.abs().expm1_(), values)
                        : values.exp(),
          // Not in place: the gradient of exp needs its result.
          .confidence = maps.select(4, -1).exp().add(1)};
}

}  // namespace lockstep::vggt
