// Places are numbers of 1/1024 of a pixel. INTER_LINEAR rounds them to 1/32 and
// INTER_NEAREST to whole pixels.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "lockstep/data/opencv_ops.h"
#include "lockstep/data/packed_pixel.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr int kPlaceBits = 10;
constexpr int kPartBits = 5;  // Position between two pixels.
constexpr int kParts = 1 << kPartBits;

struct Weights {
  int top_left, top_right, bottom_left, bottom_right;
};

Weights weights_of(int part_x, int part_y) {
  return {.top_left = (kParts - part_x) * (kParts - part_y),
          .top_right = part_x * (kParts - part_y),
          .bottom_left = (kParts - part_x) * part_y,
          .bottom_right = part_x * part_y};
}

constexpr int kHalfWeight = 1 << (2 * kPartBits - 1);

// Sums of all three channels at once.
void mix_rgb(const uint8_t* top, const uint8_t* bottom, Weights weights,
             uint8_t* to) {
  constexpr uint64_t kHalves = packed(kHalfWeight, kHalfWeight, kHalfWeight);
  const uint64_t sum = packed(top) * uint64_t(weights.top_left) +
                       packed(top + 3) * uint64_t(weights.top_right) +
                       packed(bottom) * uint64_t(weights.bottom_left) +
                       packed(bottom + 3) * uint64_t(weights.bottom_right) +
                       kHalves;
  for (int c = 0; c < 3; ++c) {
    to[c] = uint8_t(packed_part(sum, c) >> 2 * kPartBits);
  }
}

// Where one of the four may lie beyond the border.
void mix_at_border(const Tile& tile, Rotation::Place at, Weights weights,
                   const std::array<uint8_t, 3>& border, uint8_t* to) {
  const Image& image = tile.image;
  const auto channels = size_t(image.channels);
  const auto pixel = [&](int x, int y) -> const uint8_t* {
    const bool is_inside =
        x >= 0 && y >= 0 && x < tile.whole.width && y < tile.whole.height;
    return is_inside
               ? image.row(y - tile.top) + size_t(x - tile.left) * channels
               : border.data();
  };
  const uint8_t* top_left = pixel(at.x, at.y);
  const uint8_t* top_right = pixel(at.x + 1, at.y);
  const uint8_t* bottom_left = pixel(at.x, at.y + 1);
  const uint8_t* bottom_right = pixel(at.x + 1, at.y + 1);
  for (size_t c = 0; c < channels; ++c) {
    const int sum = top_left[c] * weights.top_left +
                    top_right[c] * weights.top_right +
                    bottom_left[c] * weights.bottom_left +
                    bottom_right[c] * weights.bottom_right + kHalfWeight;
    to[c] = uint8_t(sum >> 2 * kPartBits);
  }
}

void rotate_rgb_row(const Tile& tile, std::span<const Rotation::Place> places,
                    const std::array<uint8_t, 3>& border, uint8_t* to) {
  // Copies: the compiler would have to read them again after every byte that
  // is written.
  const uint8_t* pixels = tile.image.pixels.data();
  const Box box = tile.box();
  const size_t row_bytes = tile.image.row_bytes();
  for (const Rotation::Place place : places) {
    const Weights weights =
        weights_of(place.x & (kParts - 1), place.y & (kParts - 1));
    const Rotation::Place at{.x = place.x >> kPartBits,
                             .y = place.y >> kPartBits};
    const int x = at.x - box.left;
    const int y = at.y - box.top;
    if (x >= 0 && y >= 0 && x + 1 < box.width && y + 1 < box.height) {
      const uint8_t* top = pixels + size_t(y) * row_bytes + size_t(x) * 3;
      mix_rgb(top, top + row_bytes, weights, to);
    } else {
      mix_at_border(tile, at, weights, border, to);
    }
    to += 3;
  }
}

int rounded(double value) { return int(std::lrint(value)); }

}  // namespace

Rotation::Rotation(ImageSize size, double degrees) : size_(size) {
  const double radians = degrees * (std::numbers::pi / 180);
  const double cosine = std::cos(radians);
  const double sine = std::sin(radians);
  const double center_x = size.width / 2.0;
  const double center_y = size.height / 2.0;
  const double shift_x = (1 - cosine) * center_x - sine * center_y;
  const double shift_y = sine * center_x + (1 - cosine) * center_y;
  // From the new image back to the old one.
  const double inverse = 1 / (cosine * cosine + sine * sine);
  const double xx = cosine * inverse;
  const double xy = -inverse * sine;
  const double yx = inverse * sine;
  const double yy = cosine * inverse;
  const double x0 = -xx * shift_x - xy * shift_y;
  const double y0 = -yx * shift_x - yy * shift_y;
  constexpr double kOne = 1 << kPlaceBits;
  for (int x = 0; x < size.width; ++x) {
    by_column_.push_back({rounded(xx * x * kOne), rounded(yx * x * kOne)});
  }
  for (int y = 0; y < size.height; ++y) {
    by_row_.push_back(
        {rounded((xy * y + x0) * kOne), rounded((yy * y + y0) * kOne)});
  }
}

Rotation::Place Rotation::fixed_point(int x, int y) const {
  const Place column = by_column_[size_t(x)];
  const Place row = by_row_[size_t(y)];
  return {.x = column.x + row.x, .y = column.y + row.y};
}

Rotation::Place Rotation::nearest(int x, int y) const {
  constexpr int kHalfPixel = 1 << (kPlaceBits - 1);
  const Place at = fixed_point(x, y);
  return {.x = (at.x + kHalfPixel) >> kPlaceBits,
          .y = (at.y + kHalfPixel) >> kPlaceBits};
}

// The corners of the window go furthest. Two pixels more hold all rounding and
// the second neighbour.
Box Rotation::source_of(Box window) const {
  int left = size_.width - 1;
  int top = size_.height - 1;
  int right = 0;
  int bottom = 0;
  for (const int x : {window.left, window.left + window.width - 1}) {
    for (const int y : {window.top, window.top + window.height - 1}) {
      const Place at = nearest(x, y);
      left = std::min(left, at.x);
      right = std::max(right, at.x);
      top = std::min(top, at.y);
      bottom = std::max(bottom, at.y);
    }
  }
  const Box corners{
      .left = std::max(left, 0),
      .top = std::max(top, 0),
      .width = std::min(right, size_.width - 1) - std::max(left, 0) + 1,
      .height = std::min(bottom, size_.height - 1) - std::max(top, 0) + 1};
  return grown(corners, 2, size_);
}

Tile Rotation::linear(const Tile& tile, Box window,
                      const std::array<uint8_t, 3>& border) const {
  const Image& image = tile.image;
  LOCKSTEP_CHECK(image.channels == 3, "images of three channels are rotated");
  LOCKSTEP_CHECK(is_inside(source_of(window), tile.box()), "a tile too small");
  Tile out{.image = make_image(window.width, window.height, 3),
           .left = window.left,
           .top = window.top,
           .whole = tile.whole};
  constexpr int kHalfPart = 1 << (kPlaceBits - kPartBits - 1);
  std::vector<Place> places(static_cast<size_t>(window.width));
  for (int y = 0; y < window.height; ++y) {
    for (int x = 0; x < window.width; ++x) {
      const Place at = fixed_point(window.left + x, window.top + y);
      places[size_t(x)] = {.x = (at.x + kHalfPart) >> (kPlaceBits - kPartBits),
                           .y = (at.y + kHalfPart) >> (kPlaceBits - kPartBits)};
    }
    rotate_rgb_row(tile, places, border, out.image.row(y));
  }
  return out;
}

}  // namespace lockstep::data
