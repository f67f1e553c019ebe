// Segments a whole image: at several sizes, window by window.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

struct WindowsConfig {
  int64_t window = 465;     // Pixels of a window's side.
  int64_t base_side = 512;  // Of an image's longer side at scale 1.
  std::vector<double> scales = {0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0};
  int64_t num_classes = 21;
  int64_t batch_size = 8;  // Windows of one forward pass.
};

// Windows [B, 3, S, S] -> logits [B, C, S, S].
using Segment = std::function<at::Tensor(const at::Tensor&)>;

// Probabilities [C, H, W] of an image [3, H, W] whose mean colour is 0. At
// every scale windows overlap by a third; where they do, and over the scales,
// probabilities are averaged. Images smaller than a window are surrounded by
// the mean colour.
at::Tensor segment_by_windows(const at::Tensor& image, const Segment& segment,
                              const WindowsConfig& config);

// Where windows of a side begin along a length that is no shorter than them,
// two thirds of a window apart; the last one ends with the length.
std::vector<int64_t> window_positions(int64_t length, int64_t window);

}  // namespace lockstep::deeplab
