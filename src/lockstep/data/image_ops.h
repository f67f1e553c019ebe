// Resizing, cropping and conversion of images for a batch.
//
// Free functions without state: safe to call from several threads at once. All
// throw ConfigError for a size or place that does not fit.
#pragma once

#include "lockstep/data/image.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::data {

enum class Filter { kNearest, kBox, kBilinear, kBicubic };

// Pillow's Image.resize(), level for level: when an image shrinks, the filter
// is widened so that every pixel counts. (Pillow 13 and later filters columns
// before rows when that is faster; here rows always come first.)
Image resize(const Image& image, ImageSize size, Filter filter);

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

// Both for an image that was decoded at a fraction of its size `full` (see
// ImageRequest), with the same part of the image in the same place as
// without. Its last row and column may reach beyond the image.
Image resize(const Image& image, ImageSize full, ImageSize size, Filter filter);
Image center_crop_adm(Image image, ImageSize full, int size);

// [channels, height, width], uint8.
at::Tensor to_tensor(const Image& image);

}  // namespace lockstep::data
