// Resampling in two passes, rows before columns, with 8-bit results in between:
// Pillow's order and fixed-point arithmetic, so that the levels are the same.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/data/image_codecs.h"
#include "lockstep/data/image_ops.h"

namespace lockstep {
namespace {

// 8 bits for the level and 2 for sums that overshoot leave 22 of 32.
constexpr int kFractionBits = 22;
constexpr int32_t kHalf = int32_t{1} << (kFractionBits - 1);

uint8_t to_level(int32_t sum) {
  return uint8_t(std::clamp(sum >> kFractionBits, 0, 255));
}

struct Shape {
  double (*weight)(double);  // Of a distance in pixels.
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

Kernel make_kernel(int from_size, int to_size, const Shape& shape) {
  const double scale = double(from_size) / to_size;
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
      const double share = sum == 0 ? 0 : weights[size_t(i)] / sum;
      out[i] = int32_t(std::copysign(0.5, share) +
                       share * (int32_t{1} << kFractionBits));
    }
    kernel.taps.push_back({.first = first, .count = end - first});
  }
  return kernel;
}

template <int kChannels>
void resample_row(const uint8_t* from, uint8_t* to, const Kernel& kernel) {
  for (size_t x = 0; x < kernel.taps.size(); ++x, to += kChannels) {
    const auto [first, count] = kernel.taps[x];
    const int32_t* weights = kernel.weights_of(int(x));
    const uint8_t* in = from + size_t(first) * kChannels;
    int32_t sums[kChannels];
    std::fill_n(sums, kChannels, kHalf);
    for (int i = 0; i < count; ++i, in += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += in[c] * weights[i];
    }
    for (int c = 0; c < kChannels; ++c) to[c] = to_level(sums[c]);
  }
}

Image resample_rows(const Image& image, int width, const Shape& shape) {
  const Kernel kernel = make_kernel(image.width, width, shape);
  Image out = make_image(width, image.height, image.channels);
  const auto resample = image.channels == 1 ? resample_row<1> : resample_row<3>;
  for (int y = 0; y < image.height; ++y) {
    resample(image.row(y), out.row(y), kernel);
  }
  return out;
}

void add_weighted(const uint8_t* row, int32_t weight, size_t count,
                  int32_t* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += row[i] * weight;
}

Image resample_columns(const Image& image, int height, const Shape& shape) {
  const Kernel kernel = make_kernel(image.height, height, shape);
  Image out = make_image(image.width, height, image.channels);
  std::vector<int32_t> sums(out.row_bytes());
  for (int y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    const auto [first, count] = kernel.taps[size_t(y)];
    for (int i = 0; i < count; ++i) {
      add_weighted(image.row(first + i), kernel.weights_of(y)[i], sums.size(),
                   sums.data());
    }
    std::transform(sums.begin(), sums.end(), out.row(y), to_level);
  }
  return out;
}

// The pixel below the centre of each new one. Steps are added up, as Pillow
// does it, since a product would round differently.
std::vector<int> nearest_places(int from_size, int to_size) {
  const double step = double(from_size) / to_size;
  std::vector<int> places;
  double at = step * 0.5;
  for (int i = 0; i < to_size; ++i, at += step) {
    places.push_back(std::min(int(at), from_size - 1));
  }
  return places;
}

Image resize_nearest(const Image& image, int width, int height) {
  const std::vector<int> columns = nearest_places(image.width, width);
  const std::vector<int> rows = nearest_places(image.height, height);
  Image out = make_image(width, height, image.channels);
  const auto channels = size_t(image.channels);
  uint8_t* to = out.pixels.data();
  for (const int y : rows) {
    for (const int x : columns) {
      to = std::copy_n(image.row(y) + size_t(x) * channels, channels, to);
    }
  }
  return out;
}

}  // namespace

Image resize(const Image& image, int width, int height, Filter filter) {
  check_image(image);
  if (width < 1 || height < 1) {
    throw ConfigError(fmt::format(
        "cannot resize an image to {}x{} pixels: sides must be at least 1",
        width, height));
  }
  if (filter == Filter::kNearest) return resize_nearest(image, width, height);
  const Shape shape = shape_of(filter);
  if (width == image.width && height == image.height) return image;
  if (width == image.width) return resample_columns(image, height, shape);
  const Image rows_done = resample_rows(image, width, shape);
  if (height == image.height) return rows_done;
  return resample_columns(rows_done, height, shape);
}

}  // namespace lockstep
