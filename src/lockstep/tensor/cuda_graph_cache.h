// Captures a function's kernel launches in a CUDA graph, one per input shape,
// and replays it: for networks that are called often with the same shapes and
// are bound by launch overhead.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::tensor {

struct ReplayConfig {
  // Captured shapes at most; for others the function is called. Each takes
  // memory for its input and results; intermediate memory is shared.
  size_t max_recorded = 4;
};

// The function must launch the same for equal shapes: it reads nothing back
// from the GPU, and what it uses besides its input keeps its address. A shape's
// first call just calls it, so that tables are built and algorithms chosen; the
// second one captures. Where that is not possible (the CPU, gradients required,
// an operation that cannot be captured, a capture around it) it is called every
// time. Results are
// the caller's; undefined ones stay undefined. Not thread-safe; calls belong on
// one stream.
class CudaGraphCache {
 public:
  using Function = std::function<std::vector<at::Tensor>(const at::Tensor&)>;

  explicit CudaGraphCache(Function function, const ReplayConfig& config = {});
  ~CudaGraphCache();
  CudaGraphCache(const CudaGraphCache&) = delete;
  CudaGraphCache& operator=(const CudaGraphCache&) = delete;

  std::vector<at::Tensor> operator()(const at::Tensor& input);

  // Shapes that are replayed.
  size_t num_recorded() const;

 private:
  struct Entry;

  Entry& entry_of(const at::Tensor& input);
  void record(Entry& entry, const at::Tensor& input);

  Function function_;
  ReplayConfig config_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace lockstep::tensor
