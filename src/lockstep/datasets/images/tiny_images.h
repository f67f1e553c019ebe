// Generated images to classify: bars in four directions under noise.
#pragma once

#include <cstdint>

#include "lockstep/dataset.h"

namespace lockstep::images {

struct ImageConfig {
  int64_t num_samples = 1024;
  int64_t size = 16;  // Pixels of a side.
  // Which images: sets with other seeds have none in common.
  uint64_t seed = 0;
  // Shift and brightness are drawn anew in every epoch.
  bool augment = false;
};

// Sample i is {float image [1, size, size], int64 label}. The label is the
// direction of a bar: horizontal, vertical, rising or falling.
class ImageData final : public Dataset {
 public:
  static constexpr int64_t kNumClasses = 4;

  explicit ImageData(const ImageConfig& config) : config_(config) {}

  int64_t size() const override { return config_.num_samples; }
  Sample get(int64_t index, uint64_t seed) const override;

 private:
  ImageConfig config_;
};

}  // namespace lockstep::images
