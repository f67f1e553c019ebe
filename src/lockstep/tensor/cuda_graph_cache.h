// A function of a tensor whose launches on a GPU are recorded once and then
// replayed in one go: for nets that are called often with the same shapes and
// whose launches take longer than their work.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

struct ReplayConfig {
  // Of shapes that are recorded; the function is called for others. Each takes
  // memory for its input and results; what lies between is shared.
  size_t max_recorded = 4;
};

// The function must launch the same for equal shapes: it reads nothing back
// from the GPU, and what it uses beside its input stays where it is. A shape's
// first call just calls it, so that tables are made and algorithms chosen; the
// second one records. Where that is not possible (the CPU, gradients asked for,
// an operation that cannot be recorded) it is called every time. Results are
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

}  // namespace lockstep
