#include "lockstep/nn/rope_tables.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::nn {
namespace {

// [positions, count]
at::Tensor axis_angles(const at::Tensor& positions, int64_t count,
                       double theta) {
  const at::Tensor steps =
      at::arange(count, at::kDouble) / static_cast<double>(count);
  return at::outer(positions, at::pow(theta, -steps));
}

}  // namespace

kernels::RopeTable grid_rope_table(const GridRopeConfig& config) {
  if (config.head_size % 4 != 0) {
    throw ConfigError(
        fmt::format("rope: the head size {} must be a multiple of 4: rows and "
                    "columns rotate half of a head each, in pairs of channels",
                    config.head_size));
  }
  const int64_t first = config.first_position;
  const at::Tensor context = at::zeros({config.num_context}, at::kDouble);
  const at::Tensor rows = at::arange(first, first + config.rows, at::kDouble)
                              .repeat_interleave(config.columns);
  const at::Tensor columns =
      at::arange(first, first + config.columns, at::kDouble)
          .repeat({config.rows});
  const int64_t pairs = config.head_size / 4;
  const at::Tensor u =
      axis_angles(at::cat({context, rows}), pairs, config.theta);
  const at::Tensor v =
      axis_angles(at::cat({context, columns}), pairs, config.theta);
  kernels::RopeTable table{.pairs = config.pairs};
  if (config.pairs == kernels::RopePairs::kInterleaved) {
    const at::Tensor angles = at::cat({u, v}, 1).unsqueeze(1);
    table.complex = at::polar(at::ones_like(angles), angles);
  } else {
    const at::Tensor cos_u = u.cos();
    const at::Tensor cos_v = v.cos();
    const at::Tensor sin_u = u.sin();
    const at::Tensor sin_v = v.sin();
    table.cos = at::cat({cos_u, cos_u, cos_v, cos_v}, 1).unsqueeze(1);
    table.sin = at::cat({-sin_u, sin_u, -sin_v, sin_v}, 1).unsqueeze(1);
  }
  return table;
}

kernels::RopeTable sequence_rope_table(const at::Tensor& frequencies,
                                       int64_t count) {
  const at::Tensor angles =
      at::outer(at::arange(count, frequencies.options()), frequencies);
  const at::Tensor cos = angles.cos();
  const at::Tensor sin = angles.sin();
  return {.pairs = kernels::RopePairs::kHalves,
          .cos = at::cat({cos, cos}, -1).unsqueeze(1),
          .sin = at::cat({-sin, sin}, -1).unsqueeze(1)};
}

}  // namespace lockstep::nn
