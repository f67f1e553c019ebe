#include "lockstep/diffusion/ddim.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/error.h"

namespace lockstep::diffusion {

double clean_part(int64_t t) {
  return 1 - static_cast<double>(t) / static_cast<double>(kDiffusionTimes);
}

std::vector<int64_t> ddim_times(int64_t num_steps) {
  if (num_steps <= 0) {
    throw ConfigError("sampling takes at least 1 step, not " +
                      std::to_string(num_steps));
  }
  std::vector<int64_t> times;
  for (int64_t step = 0; step <= num_steps; ++step) {
    const double rest =
        1 - static_cast<double>(step) / static_cast<double>(num_steps);
    const auto time = static_cast<int64_t>(
        std::nearbyint(static_cast<double>(kDiffusionTimes - 1) * rest));
    // More steps than times.
    if (times.empty() || time < times.back()) times.push_back(time);
  }
  return times;
}

at::Tensor sample_ddim(const Denoiser& denoise, const at::Tensor& noise,
                       const DdimConfig& config) {
  const std::vector<int64_t> times = ddim_times(config.num_steps);
  at::Tensor x = noise;
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    if (config.correct) x = config.correct(x, times[i]);
    const at::Tensor clean = denoise(x, times[i]).to(x.scalar_type());
    if (times[i + 1] == 0) return clean;
    const double now = clean_part(times[i]);
    const double next = clean_part(times[i + 1]);
    const at::Tensor contained = (x - now * clean) / (1 - now);
    x = next * clean + (1 - next) * contained;
  }
  return x;
}

}  // namespace lockstep::diffusion
