// What is done to pictures on their way to a batch.
//
// Free functions without state: safe to call from several threads at once. All
// throw ConfigError for a size or place that does not fit.
#pragma once

#include "lockstep/data/image.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

enum class Filter { kNearest, kBox, kBilinear, kBicubic };

// Pillow's Image.resize(), level for level: when an image shrinks, the filter
// is widened so that every pixel counts.
Image resize(const Image& image, int width, int height, Filter filter);

struct Box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

Image crop(const Image& image, Box box);

Image flip_horizontal(const Image& image);

// The centre square as in ADM, and so in DiT and its kin: halved by kBox while
// the short side is at least twice `size`, then brought to it by kBicubic.
Image center_crop_adm(Image image, int size);

// [channels, height, width], uint8.
at::Tensor to_tensor(const Image& image);

}  // namespace lockstep
