// Sinusoidal embeddings of positions and times.
#pragma once

#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

// [side * side, width], row by row: the first half of a vector encodes the
// column, the second the row, each as sines and then cosines of position /
// 10000^(i / (width / 4)). Throws ConfigError if width is not a multiple of 4.
at::Tensor grid_position_embedding(int64_t side, int64_t width);

struct TimeEmbeddingConfig {
  int64_t width = 256;  // Even.
  double max_period = 10000;
};

// t [B] -> [B, width] in t's type: cosines and then sines of
// t / max_period^(i / (width / 2)).
at::Tensor time_embedding(const at::Tensor& t,
                          const TimeEmbeddingConfig& config);

}  // namespace lockstep::nn
