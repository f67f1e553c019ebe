// Which of cuBLASLt's algorithms computes each product of a training.
//
// cuBLASLt's first suggestion is up to a quarter slower than the best of its
// suggestions. Which one is best depends on the GPU: it is found by timing, in
// the first step, on rank 0. All ranks use what rank 0 has found, and a
// checkpoint keeps it.
#pragma once

#include <torch/custom_class.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/kernels/linear_product_request.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// Held by the autograd graph, too. Not thread-safe: backward runs on another
// thread, while the one of forward waits for it.
class ProductAlgorithms : public torch::CustomClassHolder {
 public:
  // machine: GPU and version of cuBLASLt.
  explicit ProductAlgorithms(std::string machine);

  // Products that are not known are timed where they are first computed, until
  // the call of stop_timing().
  void start_timing() { is_timing_ = true; }
  void stop_timing() { is_timing_ = false; }
  bool is_timing() const { return is_timing_; }

  // The chosen algorithm; none if cuBLASLt has none. The callbacks are asked
  // about a shape that is new.
  struct Backend {
    std::function<std::vector<ProductAlgorithm>()> suggest = {};
    // Microseconds; negative: it cannot be used.
    std::function<double(const ProductAlgorithm&)> time = {};
    std::function<bool(const ProductAlgorithm&)> accepts = {};
  };
  std::optional<ProductAlgorithm> find(const LinearProductShape& shape,
                                       const Backend& backend);

  // What was timed, as text.
  std::string text() const;
  // Takes what another process has timed on an equal machine; nothing from
  // others, and nothing from text that is damaged.
  void take(const std::string& text);

 private:
  struct Entry {
    LinearProductShape shape = {};
    std::optional<ProductAlgorithm> algorithm = {};
    bool is_timed = false;
    bool is_checked = true;  // False: taken, and not used so far.
  };

  Entry* entry_of(const LinearProductShape& shape);
  Entry choose(const LinearProductShape& shape, const Backend& backend) const;

  std::string machine_;
  bool is_timing_ = false;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::kernels
