#include "lockstep/datasets/images/tiny_images.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <array>
#include <cmath>

#include "lockstep/random.h"

namespace lockstep::images {
namespace {

// Normals of the bars.
constexpr double kDiagonal = 0.70710678118654752;
constexpr std::array<std::array<double, 2>, ImageData::kNumClasses> kNormals = {
    {{0, 1}, {1, 0}, {kDiagonal, kDiagonal}, {kDiagonal, -kDiagonal}}};

constexpr double kBarWidth = 1.5;
constexpr double kNoise = 0.35;

struct TinyLook {
  double shift_x = 0;
  double shift_y = 0;
  double brightness = 1;
};

TinyLook augmented(uint64_t seed) {
  RandomStream draw(seed);
  return {.shift_x = 2 * draw.uniform() - 1,
          .shift_y = 2 * draw.uniform() - 1,
          .brightness = 0.75 + 0.5 * draw.uniform()};
}

}  // namespace

Sample ImageData::get(int64_t index, uint64_t seed) const {
  RandomStream draw(sample_seed(config_.seed, /*epoch=*/0, index));
  const int64_t label = draw.integer(kNumClasses);
  const auto& normal = kNormals[static_cast<size_t>(label)];
  const double offset =
      (draw.uniform() - 0.5) * 0.5 * static_cast<double>(config_.size);
  const TinyLook look = config_.augment ? augmented(seed) : TinyLook{};
  const double centre = 0.5 * static_cast<double>(config_.size - 1);

  at::Tensor image = at::empty({1, config_.size, config_.size}, at::kFloat);
  auto* pixel = image.mutable_data_ptr<float>();
  for (int64_t row = 0; row < config_.size; ++row) {
    for (int64_t column = 0; column < config_.size; ++column) {
      const double x = static_cast<double>(column) - centre - look.shift_x;
      const double y = static_cast<double>(row) - centre - look.shift_y;
      const double distance = x * normal[0] + y * normal[1] - offset;
      const double bar =
          std::exp(-0.5 * distance * distance / (kBarWidth * kBarWidth));
      *pixel++ =
          static_cast<float>(look.brightness * bar + kNoise * draw.normal());
    }
  }
  return {image, at::scalar_tensor(label, at::kLong)};
}

}  // namespace lockstep::images
