#include "lockstep/diffusion/guidance.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

namespace lockstep::diffusion {

bool is_guided(const GuidanceInterval& interval, double t) {
  return t < interval.high && (interval.low == 0 || t > interval.low);
}

Velocity guided_velocity(LabelledVelocity velocity,
                         const GuidanceConfig& config) {
  const at::Tensor none = at::full_like(config.labels, config.no_label);
  const at::Tensor both = at::cat({config.labels, none});
  return [velocity = std::move(velocity), config, both](const at::Tensor& z,
                                                        double t) {
    const int64_t rows = z.size(0);
    if (!is_guided(config.interval, t)) {
      return velocity(z, at::full({rows}, t, z.options()), config.labels)
          .to(z.scalar_type());
    }
    const auto part =
        velocity(at::cat({z, z}), at::full({2 * rows}, t, z.options()), both)
            .to(z.scalar_type())
            .chunk(2);
    std::vector<int64_t> per_row(static_cast<size_t>(z.dim()), 1);
    per_row[0] = rows;
    return part[1] + config.weights.view(per_row) * (part[0] - part[1]);
  };
}

}  // namespace lockstep::diffusion
