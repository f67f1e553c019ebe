// Segments a whole image: at several sizes, window by window.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

struct WindowsConfig {
  int64_t window = 465;     // Pixels of a window's side.
  int64_t base_side = 512;  // Longer side of an image at scale 1.
  std::vector<double> scales = {0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0};
  int64_t num_classes = 21;
  int64_t batch_size = 8;  // Windows per forward pass.
};

// Windows [B, 3, S, S] -> logits [B, C, S, S].
using Segment = std::function<at::Tensor(const at::Tensor&)>;

// Probabilities [C, H, W] of an image [3, H, W] whose mean colour is 0. At
// every scale windows overlap by a third; probabilities are averaged over
// overlaps and scales. Images smaller than a window are padded with the mean
// colour.
at::Tensor segment_by_windows(const at::Tensor& image, const Segment& segment,
                              const WindowsConfig& config);

// Start positions of windows along a length of at least `window`, two thirds of
// a window apart; the last window ends at the end.
std::vector<int64_t> window_positions(int64_t length, int64_t window);

}  // namespace lockstep::deeplab
