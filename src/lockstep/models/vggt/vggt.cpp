#include "lockstep/models/vggt/vggt.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/error.h"
#include "lockstep/nn/weights.h"
#include "lockstep/tensor/autocast.h"

namespace lockstep::vggt {
namespace {

const VggtConfig& checked(const VggtConfig& config) {
  check_vggt_config(config);
  return config;
}

// [B, S, 2 * width]
at::Tensor mean_token(const VggtLayer& layer) {
  const at::ScalarType dtype =
      at::promote_types(layer.frame.scalar_type(), at::kFloat);
  return at::cat({layer.frame.mean(2, /*keepdim=*/false, dtype),
                  layer.global.mean(2, /*keepdim=*/false, dtype)},
                 2);
}

}  // namespace

Vggt::Vggt(const VggtConfig& config) : config_(checked(config)) {
  const nn::UninitialisedWeights weights_come_later;
  aggregator_ =
      register_module("aggregator", std::make_shared<VggtAggregator>(config));
  camera_head_ =
      register_module("camera_head", std::make_shared<VggtCameraHead>(config));
  point_head_ = register_module(
      "point_head", std::make_shared<VggtDptHead>(config, DptValues::kPoints));
  depth_head_ = register_module(
      "depth_head", std::make_shared<VggtDptHead>(config, DptValues::kDepth));
}

void Vggt::check_images(const at::Tensor& images) const {
  if (images.dim() != 5 || images.size(1) == 0 || images.size(2) != 3) {
    throw ConfigError(
        fmt::format("VGGT takes images [scenes, views, 3, height, width], "
                    "not [{}]",
                    fmt::join(images.sizes().vec(), ", ")));
  }
  const int64_t height = images.size(3);
  const int64_t width = images.size(4);
  const int64_t patch = config_.patch;
  if (height == 0 || width == 0 || height % patch != 0 || width % patch != 0) {
    throw ConfigError(fmt::format(
        "VGGT takes images whose sides are multiples of its patch of {} "
        "pixels, these have {} x {}: set image_size to one, such as {}",
        patch, width, height, config_.image_size));
  }
}

VggtGeometry Vggt::forward(const at::Tensor& images, const VggtWants& wants) {
  check_images(images);
  const tensor::Autocast off(images.device().type(), at::kFloat);
  const int64_t last = config_.depth - 1;
  std::set<int64_t> wanted = {last - 1, last};
  if (wants.points || wants.depth) {
    wanted.insert(config_.dpt_layers.begin(), config_.dpt_layers.end());
  }
  const auto layers = aggregator_->forward(images, wanted);
  VggtGeometry out;
  out.tokens =
      (mean_token(layers.at(last - 1)) + mean_token(layers.at(last))).mul_(0.5);
  if (wants.pose) {
    const VggtLayer& layer = layers.at(last);
    out.pose = camera_head_->forward(
        at::cat({layer.frame.select(2, 0), layer.global.select(2, 0)}, 2));
  }
  std::array<VggtLayer, 4> map_layers;
  if (wants.points || wants.depth) {
    for (size_t i = 0; i < map_layers.size(); ++i) {
      map_layers[i] = layers.at(config_.dpt_layers[i]);
    }
  }
  const GridSize image = {images.size(3), images.size(4)};
  if (wants.points) {
    DptMaps maps = point_head_->forward(map_layers, image);
    out.points = maps.values;
    out.points_confidence = maps.confidence;
  }
  if (wants.depth) {
    DptMaps maps = depth_head_->forward(map_layers, image);
    out.depth = maps.values;
    out.depth_confidence = maps.confidence;
  }
  return out;
}

}  // namespace lockstep::vggt
