// Lists of tensors that one multi-tensor kernel can take.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::optim {

// The places of the tensors, by device and element type. In the order in which
// Python's optimizers and clip_grad_norm_ go through them, since the order of
// a sum shows in its last bits.
std::vector<std::vector<size_t>> by_device_and_dtype(
    const std::vector<at::Tensor>& tensors);

// The tensors at these places.
std::vector<at::Tensor> pick(const std::vector<at::Tensor>& tensors,
                             const std::vector<size_t>& places);

// Copies each tensor of `from` into that of `to` at the same place.
void copy_values(const std::vector<at::Tensor>& from,
                 const std::vector<at::Tensor>& to);

}  // namespace lockstep::optim
