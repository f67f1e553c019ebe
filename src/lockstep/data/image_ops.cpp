#include "lockstep/data/image_ops.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/data/image_codecs.h"
#include "lockstep/error.h"

namespace lockstep::data {

Image crop(const Image& image, Box box) {
  check_image(image);
  if (box.left < 0 || box.top < 0 || box.width < 1 || box.height < 1 ||
      box.width > image.width - box.left ||
      box.height > image.height - box.top) {
    throw ConfigError(fmt::format(
        "cannot cut {}x{} pixels at ({}, {}) out of an image of {}x{}",
        box.width, box.height, box.left, box.top, image.width, image.height));
  }
  Image out = make_image(box.width, box.height, image.channels);
  for (int y = 0; y < box.height; ++y) {
    const uint8_t* from =
        image.row(box.top + y) + size_t(box.left) * size_t(image.channels);
    std::copy_n(from, out.row_bytes(), out.row(y));
  }
  return out;
}

Image flip_horizontal(const Image& image) {
  check_image(image);
  Image out = make_image(image.width, image.height, image.channels);
  const auto channels = size_t(image.channels);
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* from = image.row(y);
    uint8_t* to = out.row(y) + out.row_bytes();
    for (int x = 0; x < image.width; ++x, from += channels) {
      to -= channels;
      std::copy_n(from, channels, to);
    }
  }
  return out;
}

Image center_crop_adm(Image image, int size) {
  const ImageSize full{.width = image.width, .height = image.height};
  return center_crop_adm(std::move(image), full, size);
}

// ADM's arithmetic, Python's round() included: halves go to the even number.
// Halvings that the decoder has done leave the image as it is.
Image center_crop_adm(Image image, ImageSize full, int size) {
  if (size < 1) {
    throw ConfigError(fmt::format(
        "cannot crop to {0}x{0} pixels: sides must be at least 1", size));
  }
  ImageSize halved = full;
  int fraction = decoded_fraction(image, full);
  while (std::min(halved.width, halved.height) >= 2 * int64_t{size}) {
    halved = {.width = halved.width / 2, .height = halved.height / 2};
    if (fraction > 1) {
      fraction /= 2;
      continue;
    }
    image = resize(image, full, halved, Filter::kBox);
    full = halved;
  }
  const double scale = size / double(std::min(halved.width, halved.height));
  image = resize(image, full,
                 {.width = int(std::nearbyint(halved.width * scale)),
                  .height = int(std::nearbyint(halved.height * scale))},
                 Filter::kBicubic);
  return crop(image, {.left = (image.width - size) / 2,
                      .top = (image.height - size) / 2,
                      .width = size,
                      .height = size});
}

at::Tensor to_tensor(const Image& image) {
  check_image(image);
  const int64_t channels = image.channels;
  at::Tensor tensor =
      at::empty({channels, image.height, image.width}, at::kByte);
  auto* planes = tensor.mutable_data_ptr<uint8_t>();
  const auto num_pixels = int64_t{image.height} * image.width;
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* from = image.pixels.data() + c;
    uint8_t* to = planes + c * num_pixels;
    for (int64_t i = 0; i < num_pixels; ++i) to[i] = from[i * channels];
  }
  return tensor;
}

}  // namespace lockstep::data
