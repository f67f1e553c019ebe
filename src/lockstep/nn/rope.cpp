#include "lockstep/nn/rope.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "lockstep/error.h"

namespace lockstep {

at::Tensor grid_rotations(const GridRopeConfig& config) {
  if (config.head_size % 4 != 0) {
    throw ConfigError("heads of width " + std::to_string(config.head_size) +
                      " cannot be turned: half of a head is pairs of the row, "
                      "half of the column, so that 4 must divide it");
  }
  const int64_t side = config.side;
  const int64_t speeds_per_axis = config.head_size / 4;
  const at::Tensor speeds =
      at::exp(at::arange(speeds_per_axis, at::kDouble) *
              (-std::log(config.theta) / static_cast<double>(speeds_per_axis)));
  const at::Tensor axis = at::outer(at::arange(side, at::kDouble), speeds);
  const at::Tensor rows =
      axis.unsqueeze(1).expand({side, side, speeds_per_axis});
  const at::Tensor columns =
      axis.unsqueeze(0).expand({side, side, speeds_per_axis});
  const at::Tensor angles = at::constant_pad_nd(
      at::cat({rows, columns}, 2).view({side * side, 2 * speeds_per_axis}),
      {0, 0, config.num_context, 0});
  return at::polar(at::ones_like(angles), angles);
}

at::Tensor apply_rope(const at::Tensor& x, const at::Tensor& rotations) {
  // A pair is a complex number: one product instead of four, and backward
  // keeps the table alone.
  const at::Tensor pairs = at::view_as_complex(x.unflatten(-1, {-1, 2}));
  return at::view_as_real(pairs * rotations).flatten(-2);
}

}  // namespace lockstep
