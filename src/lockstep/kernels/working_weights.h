// Copies of a model's weights in half precision, which the optimizer keeps up
// to date: mixed precision without a cast of every weight in every step.
#pragma once

#include <unordered_map>
#include <vector>

#include "lockstep/kernels/product_algorithms.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// Not thread-safe.
class WorkingWeights {
 public:
  // Matrices among the parameters in float32 on a GPU; biases too.
  WorkingWeights(const std::vector<at::Tensor>& parameters,
                 at::ScalarType dtype);

  at::ScalarType dtype() const { return dtype_; }

  // Undefined for a parameter without a copy.
  at::Tensor find(const at::Tensor& parameter) const;

  // Copies parameters that were changed by anything but the optimizer's kernel:
  // loaded, or exchanged with averages. All of them after mark_changed().
  void refresh();
  void mark_changed() { is_changed_ = true; }

  // For the products with these weights. Null, at first: ATen computes them.
  const c10::intrusive_ptr<ProductAlgorithms>& algorithms() const {
    return algorithms_;
  }
  void set_algorithms(c10::intrusive_ptr<ProductAlgorithms> algorithms) {
    algorithms_ = std::move(algorithms);
  }

  // Those of the scope that this thread is in; null outside.
  static const WorkingWeights* current();

  class Scope {
   public:
    explicit Scope(const WorkingWeights* weights);  // May be null.
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const WorkingWeights* outer_;
  };

 private:
  struct Entry {
    at::Tensor parameter;
    at::Tensor copy;
    int64_t version = -1;  // The parameter's when it was copied.
  };

  at::ScalarType dtype_;
  bool is_changed_ = true;
  std::vector<Entry> entries_;
  std::unordered_map<const c10::TensorImpl*, size_t> places_;
  c10::intrusive_ptr<ProductAlgorithms> algorithms_;
};

}  // namespace lockstep::kernels
