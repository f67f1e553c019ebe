#include "lockstep/datasets/images/shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/datasets/drawing.h"
#include "lockstep/random.h"

namespace lockstep::images {
namespace {

// Points per pixel and direction, so that edges are smooth.
constexpr int kPoints = 3;

struct ShapeLook {
  int64_t label = 0;
  double x = 0;  // Centre, as a fraction of the side.
  double y = 0;
  double radius = 0.3;
  double tilt = 0;
  datasets::Colour colour = {};
  datasets::Colour top = {};
  datasets::Colour bottom = {};
};

// hue 0 to 1
datasets::Colour hsv_colour(double hue, double saturation, double value) {
  datasets::Colour colour;
  for (size_t i = 0; i < 3; ++i) {
    const double place =
        std::fmod(6 * hue + 5 - 2 * static_cast<double>(i), 6.0);
    const double part = std::clamp(std::min(place, 4 - place), 0.0, 1.0);
    colour[i] = value * (1 - saturation * part);
  }
  return colour;
}

ShapeLook draw_look(uint64_t seed, int64_t index) {
  RandomStream draw(sample_seed(seed, /*epoch=*/0, index));
  const auto between = [&draw](double low, double high) {
    return datasets::draw_between(draw, low, high);
  };
  ShapeLook look{.label = draw.integer(Shapes::kNumClasses)};
  look.radius = between(0.36, 0.43);
  const double room = (0.48 - look.radius) / 1.5;
  look.x = 0.5 + between(-room, room);
  look.y = 0.5 + between(-room, room);
  look.tilt = between(-0.06, 0.06);
  const double hue = draw.uniform();
  // Another hue and another brightness: the shape stands out.
  const double other = hue + between(0.3, 0.7);
  const bool is_dark = draw.chance(0.5);
  look.colour = hsv_colour(hue, between(0.7, 1),
                           is_dark ? between(0.85, 1) : between(0.35, 0.55));
  const auto ground = [&] {
    return hsv_colour(other, between(0.15, 0.5),
                      is_dark ? between(0.05, 0.3) : between(0.8, 1));
  };
  look.top = ground();
  look.bottom = ground();
  return look;
}

// Five points, one of them up; y points up. Wider than a pentagram, whose arms
// are less than a pixel in a small image.
bool is_in_star(double x, double y) {
  constexpr double kTip = 1.1;
  constexpr double kNotch = 0.5;  // Distance of the corners between tips.
  // From the middle of the nearest arm, either side of it: one edge is left.
  const double angle =
      std::remainder(std::atan2(x, y), 2 * std::numbers::pi / 5);
  const double distance = std::hypot(x, y);
  const double along = distance * std::cos(angle);
  const double across = distance * std::abs(std::sin(angle));
  const double notch_along = kNotch * std::cos(std::numbers::pi / 5);
  const double notch_across = kNotch * std::sin(std::numbers::pi / 5);
  return notch_across * (kTip - along) > across * (kTip - notch_along);
}

// The shape has its centre at 0 and reaches to about 1; y points down.
bool is_inside(int64_t label, double x, double y) {
  const double across = std::abs(x);
  const double along = std::abs(y);
  const double distance = std::hypot(x, y);
  switch (label) {
    case 0: return distance < 0.9;
    case 1: return std::max(across, along) < 0.8;
    case 2: return y < 0.7 && across < 0.55 * (y + 0.95);
    case 3: return across * 1.35 + along < 1.05;
    case 4: return distance < 0.95 && distance > 0.52;
    case 5:
      return std::max(across, along) < 0.95 && std::min(across, along) < 0.27;
    case 6: {
      const double rising = std::abs(x + y) / std::numbers::sqrt2;
      const double falling = std::abs(x - y) / std::numbers::sqrt2;
      return std::max(rising, falling) < 1.05 &&
             std::min(rising, falling) < 0.25;
    }
    case 7: return is_in_star(x, -y);
    case 8: return distance < 0.95 && std::hypot(x - 0.55, y) > 0.72;
    default:
      return across < 0.9 && along < 0.95 &&
             std::abs(std::remainder(y, 0.7)) < 0.18;
  }
}

// Which part of a pixel the shape covers.
double shape_coverage(const ShapeLook& look, double column, double row,
                      double side) {
  const double cosine = std::cos(look.tilt);
  const double sine = std::sin(look.tilt);
  int hits = 0;
  for (int i = 0; i < kPoints * kPoints; ++i) {
    const double u = (column + (i % kPoints + 0.5) / kPoints) / side - look.x;
    const double v =
        (row + (static_cast<double>(i / kPoints) + 0.5) / kPoints) / side -
        look.y;
    const double x = (u * cosine + v * sine) / look.radius;
    const double y = (v * cosine - u * sine) / look.radius;
    if (is_inside(look.label, x, y)) ++hits;
  }
  return static_cast<double>(hits) / (kPoints * kPoints);
}

}  // namespace

Sample Shapes::get(int64_t index, uint64_t /*seed*/) const {
  const ShapeLook look = draw_look(config_.seed, index);
  const int64_t side = config_.side;
  at::Tensor image = at::empty({3, side, side}, at::kByte);
  auto* pixels = image.mutable_data_ptr<uint8_t>();
  for (int64_t row = 0; row < side; ++row) {
    const double height = static_cast<double>(row) / static_cast<double>(side);
    for (int64_t column = 0; column < side; ++column) {
      const double part =
          shape_coverage(look, static_cast<double>(column),
                         static_cast<double>(row), static_cast<double>(side));
      for (size_t i = 0; i < 3; ++i) {
        const double ground =
            (1 - height) * look.top[i] + height * look.bottom[i];
        const double value = part * look.colour[i] + (1 - part) * ground;
        pixels[(static_cast<int64_t>(i) * side + row) * side + column] =
            static_cast<uint8_t>(std::lround(255 * value));
      }
    }
  }
  return {image, at::scalar_tensor(look.label, at::kLong)};
}

}  // namespace lockstep::images
