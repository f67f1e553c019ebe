// Rectified flow: loss and sampling.
//
// The point z_t = (1 - t) x + t z lies on the line from an image x at t = 0 to
// noise z at t = 1. The model learns the velocity z - x; sampling integrates
// backwards from noise to an image.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/models/dit/model.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::dit {

// One row per image.
struct FlowDraws {
  at::Tensor times = {};   // [B], 0 to 1.
  at::Tensor noise = {};   // Shaped as the images.
  at::Tensor labels = {};  // int64 [B].
};

// The mean squared error of the velocities of each image, [B]. Images are
// [B, C, S, S] from -1 to 1.
at::Tensor flow_losses(Dit& model, const at::Tensor& images,
                       const FlowDraws& draws);

struct FlowStart {
  at::Tensor noise = {};   // [B, C, S, S].
  at::Tensor labels = {};  // int64 [B].
  // Weight of classifier-free guidance, [B]: 1 is conditional only.
  at::Tensor guidance = {};
};

struct FlowSteps {
  int64_t count = 50;
  int64_t max_frames = 26;  // At least 2.
};

// Steps after which a frame is taken: from 0 (the noise) to `count` (the
// image), evenly spaced except the last, at most max_frames.
std::vector<int64_t> frame_steps(const FlowSteps& steps);

// Samples by Euler's method. Returns trajectories [B, frames, C, S, S], uint8;
// the last frame is the image.
at::Tensor sample_flow(Dit& model, const FlowStart& start,
                       const FlowSteps& steps);

}  // namespace lockstep::dit
