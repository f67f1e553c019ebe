#include "lockstep/models/vggt/tables.h"

#include <ATen/ATen.h>

#include <cmath>

namespace lockstep::vggt {
namespace {

constexpr double kWaveStrength = 0.1;
constexpr double kLongestWave = 100;

// [count / 2 sines then count / 2 cosines, values]
at::Tensor waves_of(const at::Tensor& values, int64_t count) {
  const int64_t half = count / 2;
  const at::Tensor steps =
      at::arange(half, at::kDouble) / static_cast<double>(half);
  const at::Tensor angles = at::outer(values, at::pow(kLongestWave, -steps));
  return kWaveStrength * at::cat({angles.sin(), angles.cos()}, 1).t();
}

// Middles of `count` equal parts of -span .. span.
at::Tensor middles(double span, int64_t count) {
  const double end =
      span * static_cast<double>(count - 1) / static_cast<double>(count);
  return at::linspace(-end, end, count, at::kDouble);
}

}  // namespace

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

MapWaves moved_to(const MapWaves& waves, const at::TensorOptions& options) {
  return {.of_column = waves.of_column.to(options),
          .of_row = waves.of_row.to(options)};
}

}  // namespace lockstep::vggt
