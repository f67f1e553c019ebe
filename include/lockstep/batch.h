// What a loader gives, and what it is asked for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace lockstep {

// Where in the data a run stands: enough to go on with the very next batch.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // Batches of this epoch that were given out.
};

struct BatchRequest {
  std::vector<int64_t> indices = {};  // The samples, in order; at least one.
  int64_t epoch = 0;                  // Decides their random draws.
  DataPosition next = {};
  // A batch that keeps this rank in step with the others although it has no
  // samples left: to be computed, and to count nothing.
  bool is_filler = false;
};

// Gives the requests of a run in order, no value at its end. Called from any
// thread, by one at a time.
using RequestSequence = std::function<std::optional<BatchRequest>()>;

struct Batch {
  std::vector<at::Tensor> tensors = {};  // On the loader's device.
  // The samples' seeds as Dataset::get() got them, for SampleRandom: int64, on
  // the device too.
  at::Tensor seeds = {};
  std::vector<int64_t> indices = {};  // The samples, in order.
  DataPosition next = {};             // Position after this batch.
  bool is_filler = false;

  const at::Tensor& operator[](size_t part) const { return tensors.at(part); }
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
};

}  // namespace lockstep
