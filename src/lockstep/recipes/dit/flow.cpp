#include "lockstep/recipes/dit/flow.h"

#include <torch/torch.h>

namespace lockstep {
namespace {

at::Tensor as_bytes(const at::Tensor& pictures) {
  return (pictures.clamp(-1, 1) * 127.5 + 127.5).round().to(at::kByte);
}

// With and without the class in one batch: uncond + w (cond - uncond).
at::Tensor guided_velocity(Dit& model, const at::Tensor& z,
                           const at::Tensor& times, const FlowStart& start) {
  const at::Tensor no_class =
      torch::full_like(start.labels, model.config().num_classes);
  const auto velocity =
      model
          .forward(torch::cat({z, z}), torch::cat({times, times}),
                   torch::cat({start.labels, no_class}))
          .to(z.scalar_type())
          .chunk(2);
  return velocity[1] +
         start.guidance.view({-1, 1, 1, 1}) * (velocity[0] - velocity[1]);
}

}  // namespace

at::Tensor flow_losses(Dit& model, const at::Tensor& pictures,
                       const FlowDraws& draws) {
  const at::Tensor t = draws.times.view({-1, 1, 1, 1});
  const at::Tensor z_t = (1 - t) * pictures + t * draws.noise;
  const at::Tensor velocity =
      model.forward(z_t, draws.times, draws.labels).to(pictures.scalar_type());
  const at::Tensor error = velocity - (draws.noise - pictures);
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
  at::Tensor z = start.noise;
  std::vector<at::Tensor> frames = {as_bytes(z)};
  const std::vector<int64_t> taken = frame_steps(steps);
  for (int64_t step = 0; step < steps.count; ++step) {
    // linspace(0, 1, count) from its end: both 1 and 0 are evaluated.
    const double t =
        steps.count == 1
            ? 0
            : static_cast<double>(steps.count - 1 - step) / (count - 1);
    const at::Tensor times = torch::full({z.size(0)}, t, z.options());
    z = z - guided_velocity(model, z, times, start) / count;
    if (step + 1 == taken[frames.size()]) frames.push_back(as_bytes(z));
  }
  return torch::stack(frames, 1);
}

}  // namespace lockstep
