// What a loader gives.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

// Where in the data a run stands: enough to go on with the very next batch.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // Batches of this epoch that were given out.
};

struct Batch {
  std::vector<at::Tensor> tensors;  // On the loader's device.
  std::vector<int64_t> indices;     // The samples, in order.
  DataPosition next;                // Position after this batch.

  const at::Tensor& operator[](size_t part) const { return tensors.at(part); }
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
};

}  // namespace lockstep
