#include "lockstep/models/jit/image_flow.h"

#include <torch/torch.h>

#include "lockstep/diffusion/ode.h"

namespace lockstep::jit {
namespace {

at::Tensor per_image(const at::Tensor& values) {
  return values.view({-1, 1, 1, 1});
}

at::Tensor time_left(const at::Tensor& times, const JitObjective& objective) {
  return (1 - times).clamp_min(objective.t_eps);
}

}  // namespace

at::Tensor jit_image_losses(JitImage& model, const at::Tensor& images,
                            const JitImageDraws& draws,
                            const JitObjective& objective) {
  const at::Tensor t = per_image(draws.times);
  const at::Tensor z =
      t * images + (1 - t) * (draws.noise * objective.noise_scale);
  const at::Tensor predicted =
      model.forward(z, draws.times, draws.labels).to(images.scalar_type());
  // z is the same in both velocities: their difference is that of the images.
  const at::Tensor errors = (predicted - images).square().mean({1, 2, 3});
  return errors / time_left(draws.times, objective).square();
}

at::Tensor sample_jit_images(JitImage& model, const JitImageStart& start,
                             const JitSampling& sampling) {
  const diffusion::LabelledVelocity velocity = [&](const at::Tensor& z,
                                                   const at::Tensor& times,
                                                   const at::Tensor& labels) {
    const at::Tensor predicted =
        model.forward(z, times, labels).to(z.scalar_type());
    return (predicted - z) / per_image(time_left(times, sampling.objective));
  };
  const diffusion::Velocity guided = diffusion::guided_velocity(
      velocity, {.labels = start.labels,
                 .no_label = model.config().num_classes,
                 .weights = start.guidance,
                 .interval = sampling.interval});
  const std::vector<double> times =
      diffusion::even_times(0, 1, sampling.num_steps);
  const at::Tensor z = start.noise * sampling.objective.noise_scale;
  return sampling.method == OdeMethod::kHeun
             ? diffusion::follow_heun(guided, z, times)
             : diffusion::follow_euler(guided, z,
                                       diffusion::euler_steps(times));
}

}  // namespace lockstep::jit
