// A tree whose tensors are ready to be written: on the CPU, without autograd.
#pragma once

#include "lockstep/checkpoint/tree.h"

namespace lockstep {

enum class CpuTensors {
  kShare,  // The result points to the memory of the caller's CPU tensors.
  kCopy,   // Nothing that the caller does later changes the result.
};

// Tensors of a GPU go to pinned memory; blocks until they are there. A storage
// that its tensors cover is copied whole, so that tied weights stay tied; of a
// storage that is used in part only the tensors are copied. Throws ConfigError
// for a tensor that is undefined or not dense.
Tree host_copy(const Tree& tree, CpuTensors cpu_tensors);

}  // namespace lockstep
