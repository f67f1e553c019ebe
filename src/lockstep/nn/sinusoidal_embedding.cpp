#include "lockstep/nn/sinusoidal_embedding.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/error.h"

namespace lockstep::nn {
namespace {

// base^(-i / count) for i = 0 ... count - 1
at::Tensor falling_frequencies(double base, int64_t count,
                               at::TensorOptions options) {
  return at::exp(at::arange(count, options) *
                 (-std::log(base) / static_cast<double>(count)));
}

// [side] -> [side, width / 2]
at::Tensor axis_embedding(const at::Tensor& positions, int64_t width) {
  const at::Tensor angles = at::outer(
      positions, falling_frequencies(10000, width / 4, positions.options()));
  return at::cat({angles.sin(), angles.cos()}, 1);
}

}  // namespace

at::Tensor grid_position_embedding(int64_t side, int64_t width) {
  if (width % 4 != 0) {
    throw ConfigError("the width " + std::to_string(width) +
                      " must be a multiple of 4: a quarter of it each is sine "
                      "and cosine of row and column");
  }
  const at::Tensor axis = axis_embedding(at::arange(side, at::kDouble), width);
  const at::Tensor columns = axis.unsqueeze(0).expand({side, side, width / 2});
  const at::Tensor rows = axis.unsqueeze(1).expand({side, side, width / 2});
  return at::cat({columns, rows}, 2).view({side * side, width}).to(at::kFloat);
}

at::Tensor time_embedding(const at::Tensor& t,
                          const TimeEmbeddingConfig& config) {
  const at::Tensor angles =
      t.unsqueeze(1) *
      falling_frequencies(config.max_period, config.width / 2, t.options());
  return at::cat({angles.cos(), angles.sin()}, 1);
}

}  // namespace lockstep::nn
