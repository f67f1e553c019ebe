// Resampling in two passes, rows before columns, with 8-bit results in between:
// Pillow's order and fixed-point arithmetic, so that the levels are the same.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/data/image_codecs.h"
#include "lockstep/data/image_ops.h"
#include "lockstep/data/vector_clones.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

// 8 bits for the level and 2 for sums that overshoot leave 22 of 32.
constexpr int kFractionBits = 22;
constexpr int32_t kRounding = int32_t{1} << (kFractionBits - 1);

uint8_t to_level(int32_t sum) {
  return uint8_t(std::clamp(sum >> kFractionBits, 0, 255));
}

struct Shape {
  double (*weight)(double);  // By distance in pixels.
  double support;            // The weight is 0 beyond this distance.
};

double box_weight(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear_weight(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

// Keys' cubic with a = -1/2.
double bicubic_weight(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

Shape shape_of(Filter filter) {
  if (filter == Filter::kBox) return {box_weight, 0.5};
  if (filter == Filter::kBilinear) return {bilinear_weight, 1.0};
  return {bicubic_weight, 2.0};
}

// For every place of the output: which places of the input count, and how much.
struct Kernel {
  struct Taps {
    int first = 0;
    int count = 0;
  };
  std::vector<Taps> taps;
  std::vector<int32_t> weights;  // `stride` per place of the output.
  int stride = 0;

  const int32_t* weights_of(int place) const {
    return weights.data() + size_t(place) * size_t(stride);
  }
};

// `extent` is how much of the input shows the image.
Kernel make_kernel(int from_size, double extent, int to_size,
                   const Shape& shape) {
  const double scale = extent / to_size;
  const double widening = std::max(scale, 1.0);
  const double support = shape.support * widening;
  Kernel kernel;
  kernel.stride = int(std::ceil(support)) * 2 + 1;
  kernel.weights.resize(size_t(to_size) * size_t(kernel.stride));
  std::vector<double> weights(size_t(kernel.stride));
  for (int place = 0; place < to_size; ++place) {
    const double center = (place + 0.5) * scale;
    const int first = std::max(0, int(center - support + 0.5));
    const int end = std::min(from_size, int(center + support + 0.5));
    double sum = 0;
    for (int i = 0; i < end - first; ++i) {
      weights[size_t(i)] =
          shape.weight((i + first - center + 0.5) * (1.0 / widening));
      sum += weights[size_t(i)];
    }
    int32_t* out =
        kernel.weights.data() + size_t(place) * size_t(kernel.stride);
    for (int i = 0; i < end - first; ++i) {
      const double weight = sum == 0 ? 0 : weights[size_t(i)] / sum;
      out[i] = int32_t(std::copysign(0.5, weight) +
                       weight * (int32_t{1} << kFractionBits));
    }
    kernel.taps.push_back({.first = first, .count = end - first});
  }
  return kernel;
}

using Bytes4 = uint8_t __attribute__((vector_size(4)));
using Lanes4 = int32_t __attribute__((vector_size(16)));

// Three channels and a fourth lane that is thrown away, since four make a
// vector: both rows need a byte more than they hold.
LOCKSTEP_VECTOR_CLONES
void resample_rgb_row(const uint8_t* from, uint8_t* to, const Kernel& kernel) {
  for (size_t x = 0; x < kernel.taps.size(); ++x, to += 3) {
    const auto [first, count] = kernel.taps[x];
    const int32_t* weights = kernel.weights_of(int(x));
    const uint8_t* in = from + size_t(first) * 3;
    Lanes4 sums = {kRounding, kRounding, kRounding, kRounding};
    for (int i = 0; i < count; ++i, in += 3) {
      Bytes4 bytes;
      std::memcpy(&bytes, in, sizeof(bytes));
      sums += __builtin_convertvector(bytes, Lanes4) * weights[i];
    }
    sums >>= kFractionBits;
    sums = sums < 0 ? Lanes4{} : sums;
    sums = sums > 255 ? Lanes4{255, 255, 255, 255} : sums;
    const Bytes4 levels = __builtin_convertvector(sums, Bytes4);
    std::memcpy(to, &levels, sizeof(levels));
  }
}

LOCKSTEP_VECTOR_CLONES
void resample_grey_row(const uint8_t* from, uint8_t* to, const Kernel& kernel) {
  for (size_t x = 0; x < kernel.taps.size(); ++x) {
    const auto [first, count] = kernel.taps[x];
    const int32_t* weights = kernel.weights_of(int(x));
    int32_t sum = kRounding;
    for (int i = 0; i < count; ++i) sum += from[first + i] * weights[i];
    to[x] = to_level(sum);
  }
}

Image resample_rows(const Image& image, double extent, int width,
                    const Shape& shape) {
  const Kernel kernel = make_kernel(image.width, extent, width, shape);
  Image out = make_image(width, image.height, image.channels);
  const auto resample =
      image.channels == 1 ? resample_grey_row : resample_rgb_row;
  std::vector<uint8_t> from(image.row_bytes() + 1);
  std::vector<uint8_t> to(out.row_bytes() + 1);
  for (int y = 0; y < image.height; ++y) {
    std::copy_n(image.row(y), image.row_bytes(), from.begin());
    resample(from.data(), to.data(), kernel);
    std::copy_n(to.begin(), out.row_bytes(), out.row(y));
  }
  return out;
}

LOCKSTEP_VECTOR_CLONES
void add_weighted(const uint8_t* row, int32_t weight, size_t count,
                  int32_t* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += row[i] * weight;
}

LOCKSTEP_VECTOR_CLONES
void to_levels(const int32_t* sums, size_t count, uint8_t* levels) {
  for (size_t i = 0; i < count; ++i) levels[i] = to_level(sums[i]);
}

Image resample_columns(const Image& image, double extent, int height,
                       const Shape& shape) {
  const Kernel kernel = make_kernel(image.height, extent, height, shape);
  Image out = make_image(image.width, height, image.channels);
  std::vector<int32_t> sums(out.row_bytes());
  for (int y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), kRounding);
    const auto [first, count] = kernel.taps[size_t(y)];
    for (int i = 0; i < count; ++i) {
      add_weighted(image.row(first + i), kernel.weights_of(y)[i], sums.size(),
                   sums.data());
    }
    to_levels(sums.data(), sums.size(), out.row(y));
  }
  return out;
}

// The pixel below the centre of each new one. Steps are added up, as Pillow
// does it, since a product would round differently.
std::vector<int> pillow_nearest_places(int from_size, double extent,
                                       int to_size) {
  const double step = extent / to_size;
  std::vector<int> places;
  double at = step * 0.5;
  for (int i = 0; i < to_size; ++i, at += step) {
    places.push_back(std::min(int(at), from_size - 1));
  }
  return places;
}

struct Extent {
  double width;
  double height;
};

Image resize_nearest(const Image& image, Extent extent, ImageSize size) {
  const auto columns =
      pillow_nearest_places(image.width, extent.width, size.width);
  const auto rows =
      pillow_nearest_places(image.height, extent.height, size.height);
  Image out = make_image(size.width, size.height, image.channels);
  const auto channels = size_t(image.channels);
  uint8_t* to = out.pixels.data();
  for (const int y : rows) {
    for (const int x : columns) {
      to = std::copy_n(image.row(y) + size_t(x) * channels, channels, to);
    }
  }
  return out;
}

Extent extent_of(const Image& image, ImageSize full) {
  const int fraction = decoded_fraction(image, full);
  return {.width = double(full.width) / fraction,
          .height = double(full.height) / fraction};
}

}  // namespace

Image resize(const Image& image, ImageSize size, Filter filter) {
  return resize(image, {.width = image.width, .height = image.height}, size,
                filter);
}

Image resize(const Image& image, ImageSize full, ImageSize size,
             Filter filter) {
  check_image(image);
  if (size.width < 1 || size.height < 1) {
    throw ConfigError(fmt::format(
        "cannot resize an image to {}x{} pixels: sides must be at least 1",
        size.width, size.height));
  }
  const Extent extent = extent_of(image, full);
  if (filter == Filter::kNearest) return resize_nearest(image, extent, size);
  const Shape shape = shape_of(filter);
  const bool same_width = extent.width == size.width;
  const bool same_height = extent.height == size.height;
  if (same_width && same_height) return image;
  if (same_width) {
    return resample_columns(image, extent.height, size.height, shape);
  }
  const Image rows_done = resample_rows(image, extent.width, size.width, shape);
  if (same_height) return rows_done;
  return resample_columns(rows_done, extent.height, size.height, shape);
}

}  // namespace lockstep::data
