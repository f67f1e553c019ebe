// The terms of the scribble loss, each as a sum and a normaliser, so that a
// step over many ranks divides once.
#pragma once

#include <cstdint>

#include "lockstep/data/label_map.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

// Scalars on the device, the normaliser an exact count in float64. 0 if nothing
// was counted.
struct LossSum {
  at::Tensor sum;
  at::Tensor normaliser;
};

// Resizes maps [B, C, h, w]: bilinear, align_corners.
at::Tensor resize_maps(const at::Tensor& maps, int64_t height, int64_t width);

// Log-probabilities [B, C, S, S] of logits [B, C, s, s] upsampled to S, at
// least in float32. All terms but LoRM's share them.
at::Tensor log_probabilities(const at::Tensor& logits, int64_t height,
                             int64_t width);

// Cross entropy over the pixels of labels uint8 [B, S, S] that are not kNoLabel
// (others must be below C), and their number.
LossSum cross_entropy(const at::Tensor& log_probabilities,
                      const at::Tensor& labels, double label_smoothing = 0);

// Entropy [B, S, S] of each pixel. Saves only its input for backward.
at::Tensor pixel_entropy(const at::Tensor& log_probabilities);

// Entropies weighted by distances uint8 [B, S, S] / 255, and the number of
// products that are not 0.
LossSum weighted_entropy(const at::Tensor& entropy,
                         const at::Tensor& distances);

}  // namespace lockstep::deeplab
