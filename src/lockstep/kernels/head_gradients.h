// Gradients of queries, keys and values as a kernel takes them.
#pragma once

#include <array>
#include <vector>

#include "lockstep/kernels/head_strides.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// Whether a kernel can read heads [B, N, heads, size] in packs of 16 bytes.
bool is_head_strided(const at::Tensor& heads);

// The same, or a copy that is so.
at::Tensor with_head_strides(const at::Tensor& heads);

// Fills pointers and strides; copies gradients that a kernel cannot read in
// packs of 16 bytes. Must live until the launch.
class HeadGradients {
 public:
  HeadGradients(const std::vector<at::Tensor>& gradients,
                const void* (&pointers)[3], HeadStrides (&strides)[3]);

 private:
  std::array<at::Tensor, 3> tensors_;
};

}  // namespace lockstep::kernels
