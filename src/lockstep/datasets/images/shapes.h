// Generated images of coloured shapes: a data set without files.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lockstep/dataset.h"

namespace lockstep::images {

struct ShapesConfig {
  int64_t num_samples = 50'000;
  int64_t side = 32;  // Pixels.
  // Which images: sets with other seeds have none in common.
  uint64_t seed = 0;
};

// Sample i is {uint8 [3, side, side], int64 label}: one shape on a background
// that fades from top to bottom. Place, size, tilt and colours are drawn; the
// sample's number alone decides them.
class Shapes final : public Dataset {
 public:
  static constexpr std::array<std::string_view, 10> kClasses = {
      "circle", "square", "triangle", "diamond",  "ring",
      "plus",   "cross",  "star",     "crescent", "bars"};
  static constexpr int64_t kNumClasses = kClasses.size();

  explicit Shapes(const ShapesConfig& config) : config_(config) {}

  int64_t size() const override { return config_.num_samples; }
  Sample get(int64_t index, uint64_t seed) const override;

 private:
  ShapesConfig config_;
};

}  // namespace lockstep::images
