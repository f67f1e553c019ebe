// Where the heads of queries, keys and values lie.
#pragma once

#include <cstdint>

namespace lockstep::kernels {

// Strides of [samples, tokens, heads, size] whose last dimension is packed.
struct HeadStrides {
  int64_t sample = 0;
  int64_t token = 0;
  int64_t head = 0;
};

}  // namespace lockstep::kernels
