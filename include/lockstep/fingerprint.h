// A 64-bit fingerprint of tensors: equal bits, equal number, on the CPU and on
// CUDA.
//
// A cheap check that ranks are still in lockstep: equal fingerprints of the
// parameters mean equal parameters (two different sets collide with probability
// 2^-64).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {

// Depends on the tensors' order and bytes, not on their shapes. Waits for the
// device.
LOCKSTEP_EXPORT uint64_t fingerprint(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep
