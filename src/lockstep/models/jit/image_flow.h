// The flow of JiT: straight lines from noise to images.
//
// The point z_t = t x + (1 - t) e lies on the line from noise e at t = 0 to an
// image x at t = 1. The model predicts x; the loss compares velocities, (x -
// z_t) / (1 - t), and sampling follows them.
#pragma once

#include <cstdint>

#include "lockstep/diffusion/guidance.h"
#include "lockstep/models/jit/image_model.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::jit {

struct JitObjective {
  double noise_scale = 1;
  // Lower bound of 1 - t as a divisor: near t = 1 errors would be unbounded.
  double t_eps = 0.05;
};

// One row per image.
struct JitImageDraws {
  at::Tensor times = {};   // [B], 0 to 1.
  at::Tensor noise = {};   // Shaped as the images, deviation 1.
  at::Tensor labels = {};  // int64 [B].
};

// The mean squared error of the velocities of each image, [B]. Images are
// [B, C, S, S] from -1 to 1.
at::Tensor jit_image_losses(JitImage& model, const at::Tensor& images,
                            const JitImageDraws& draws,
                            const JitObjective& objective);

enum class OdeMethod { kEuler, kHeun };

struct JitSampling {
  JitObjective objective = {};
  OdeMethod method = OdeMethod::kHeun;
  int64_t num_steps = 50;
  diffusion::GuidanceInterval interval = {};
};

struct JitImageStart {
  at::Tensor noise = {};     // [B, C, S, S], deviation 1.
  at::Tensor labels = {};    // int64 [B].
  at::Tensor guidance = {};  // Weight of guidance, [B].
};

// Images [B, C, S, S] from about -1 to 1.
at::Tensor sample_jit_images(JitImage& model, const JitImageStart& start,
                             const JitSampling& sampling);

}  // namespace lockstep::jit
