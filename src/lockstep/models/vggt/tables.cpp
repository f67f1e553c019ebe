#include "lockstep/models/vggt/tables.h"

#include <ATen/ATen.h>

#include <cmath>

namespace lockstep {
namespace {

constexpr double kWaveStrength = 0.1;
constexpr double kLongestWave = 100;

// [values, count]: angle i of n turns with speed base^(-i / n).
at::Tensor angles_of(const at::Tensor& values, int64_t count, double base) {
  const at::Tensor steps =
      at::arange(count, at::kDouble) / static_cast<double>(count);
  return values.unsqueeze(1) * at::pow(base, -steps).unsqueeze(0);
}

// [count / 2 sines then count / 2 cosines, values]
at::Tensor waves_of(const at::Tensor& values, int64_t count) {
  const at::Tensor angles = angles_of(values, count / 2, kLongestWave);
  return kWaveStrength * at::cat({angles.sin(), angles.cos()}, 1).t();
}

// Middles of `count` equal parts of -span .. span.
at::Tensor middles(double span, int64_t count) {
  const double end =
      span * static_cast<double>(count - 1) / static_cast<double>(count);
  return at::linspace(-end, end, count, at::kDouble);
}

}  // namespace

RopeTable make_head_rotations(const HeadRotationsConfig& config) {
  const GridSize& grid = config.grid;
  const at::Tensor special = at::zeros({config.num_special}, at::kDouble);
  const at::Tensor rows =
      at::arange(1, grid.height + 1, at::kDouble).repeat_interleave(grid.width);
  const at::Tensor columns =
      at::arange(1, grid.width + 1, at::kDouble).repeat({grid.height});
  const int64_t pairs = config.head_size / 4;
  const at::Tensor row_angles =
      angles_of(at::cat({special, rows}), pairs, config.frequency);
  const at::Tensor column_angles =
      angles_of(at::cat({special, columns}), pairs, config.frequency);
  const at::Tensor sin_row = row_angles.sin();
  const at::Tensor cos_row = row_angles.cos();
  const at::Tensor sin_column = column_angles.sin();
  const at::Tensor cos_column = column_angles.cos();
  return {
      .cosines =
          at::cat({cos_row, cos_row, cos_column, cos_column}, 1).unsqueeze(1),
      .sines = at::cat({-sin_row, sin_row, -sin_column, sin_column}, 1)
                   .unsqueeze(1)};
}

MapWaves make_map_waves(const GridSize& map, int64_t channels, double aspect) {
  const double diagonal = std::sqrt(aspect * aspect + 1);
  return {
      .of_column = waves_of(middles(aspect / diagonal, map.width), channels / 2)
                       .unsqueeze(1),
      .of_row = waves_of(middles(1 / diagonal, map.height), channels / 2)
                    .unsqueeze(2)};
}

void add_map_waves(const at::Tensor& maps, const MapWaves& waves) {
  const int64_t half = maps.size(1) / 2;
  maps.narrow(1, 0, half).add_(waves.of_column);
  maps.narrow(1, half, half).add_(waves.of_row);
}

RopeTable moved_to(const RopeTable& rotations,
                   const at::TensorOptions& options) {
  return {.cosines = rotations.cosines.to(options),
          .sines = rotations.sines.to(options)};
}

MapWaves moved_to(const MapWaves& waves, const at::TensorOptions& options) {
  return {.of_column = waves.of_column.to(options),
          .of_row = waves.of_row.to(options)};
}

}  // namespace lockstep
