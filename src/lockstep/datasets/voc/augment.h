// The random changes of a training image and of the maps that belong to it.
//
// In the order of the original: scale, rotation, blur, mirror, crop. Scale and
// rotation have OpenCV 4's conventions (data/opencv_ops.h). An image is sampled
// linearly, a map by its nearest pixel. Only what the crop shows is computed,
// and a map goes through all steps at once, with the same result.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/data/image.h"
#include "lockstep/data/opencv_ops.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::voc {

struct AugmentConfig {
  int64_t side = 465;  // Side of the crop.
  double least_scale = 0.5;
  double largest_scale = 2.0;
  double rotate_chance = 0.5;
  double most_degrees = 10;  // To either side.
  double blur_chance = 0.5;
  double mirror_chance = 0.5;
};

// What was drawn for one sample.
struct AugmentDraws {
  double scale = 1;
  std::optional<double> degrees = {};
  bool is_blurred = false;
  bool is_mirrored = false;
  // Where the crop lies in what room there is: [0, 1) from left to right and
  // from top to bottom. No value: in the middle.
  std::optional<double> across = {};
  std::optional<double> down = {};
};

AugmentDraws draw_augmentation(const AugmentConfig& config, uint64_t seed);

// Red, green and blue where an image does not reach: ImageNet's mean.
constexpr std::array<uint8_t, 3> kPaddingColour = {124, 116, 104};
// Every map there: no label, and full weight in the maps of distances, as in
// the original.
constexpr uint8_t kPaddingLevel = 255;

// The way of one sample. Immutable; safe to use from several threads.
class Augmentation {
 public:
  // For images of this size. Throws ConfigError for a side below 1.
  Augmentation(data::ImageSize size, int64_t side, const AugmentDraws& draws);

  // uint8 [3, side, side] of an image with three channels.
  at::Tensor image(const data::Image& image) const;
  // uint8 [side, side] of a map of the same size, with one.
  at::Tensor map(const data::Image& map) const;

 private:
  std::vector<int32_t> find_pixels() const;

  AugmentDraws draws_;
  int side_ = 0;
  data::Scaling scaling_;
  std::optional<data::Rotation> rotation_;
  // Where the crop begins in the scaled image, after mirroring; negative
  // where padding comes first.
  int left_ = 0;
  int top_ = 0;
  data::Box window_;  // The crop in the scaled image, before mirroring.
  // For each pixel of the crop the number of that of the map; -1 for padding.
  std::vector<int32_t> pixels_;
};

}  // namespace lockstep::voc
