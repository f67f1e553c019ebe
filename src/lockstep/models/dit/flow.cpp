#include "lockstep/models/dit/flow.h"

#include <torch/torch.h>

#include "lockstep/diffusion/guidance.h"
#include "lockstep/diffusion/ode.h"
#include "lockstep/diffusion/pixels.h"

namespace lockstep::dit {
at::Tensor flow_losses(Dit& model, const at::Tensor& images,
                       const FlowDraws& draws) {
  const at::Tensor t = draws.times.view({-1, 1, 1, 1});
  const at::Tensor z_t = (1 - t) * images + t * draws.noise;
  const at::Tensor velocity =
      model.forward(z_t, draws.times, draws.labels).to(images.scalar_type());
  const at::Tensor error = velocity - (draws.noise - images);
  return error.square().mean({1, 2, 3});
}

std::vector<int64_t> frame_steps(const FlowSteps& steps) {
  const int64_t gaps = steps.max_frames - 1;
  const int64_t stride = (steps.count + gaps - 1) / gaps;
  std::vector<int64_t> taken;
  for (int64_t step = 0; step < steps.count; step += stride) {
    taken.push_back(step);
  }
  taken.push_back(steps.count);
  return taken;
}

at::Tensor sample_flow(Dit& model, const FlowStart& start,
                       const FlowSteps& steps) {
  const auto count = static_cast<double>(steps.count);
  const diffusion::Velocity guided = diffusion::guided_velocity(
      [&model](const at::Tensor& z, const at::Tensor& times,
               const at::Tensor& labels) {
        return model.forward(z, times, labels);
      },
      {.labels = start.labels,
       .no_label = model.config().num_classes,
       .weights = start.guidance});
  // The velocity of one step, divided by the count instead of multiplied by its
  // rounded inverse.
  const diffusion::Velocity per_step = [&](const at::Tensor& z, double t) {
    return guided(z, t) / -count;
  };
  std::vector<diffusion::EulerStep> euler;
  for (int64_t step = 0; step < steps.count; ++step) {
    // linspace(0, 1, count), reversed: both 1 and 0 are evaluated.
    const double t =
        steps.count == 1
            ? 0
            : static_cast<double>(steps.count - 1 - step) / (count - 1);
    euler.push_back({.time = t, .length = 1});
  }
  std::vector<at::Tensor> frames = {diffusion::as_bytes(start.noise)};
  const std::vector<int64_t> taken = frame_steps(steps);
  diffusion::follow_euler(per_step, start.noise, euler,
                          [&](int64_t done, const at::Tensor& z) {
                            if (done == taken[frames.size()]) {
                              frames.push_back(diffusion::as_bytes(z));
                            }
                          });
  return torch::stack(frames, 1);
}

}  // namespace lockstep::dit
