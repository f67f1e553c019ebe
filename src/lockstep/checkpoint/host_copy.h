// A tree with tensors ready to be written: on the CPU, without autograd.
#pragma once

#include <vector>

#include "lockstep/checkpoint.h"

namespace lockstep::checkpoint {

enum class CpuTensors {
  kShare,  // The result points to the memory of the caller's CPU tensors.
  kCopy,   // Nothing that the caller does later changes the result.
};

// The memory of a copy, kept for the next one: memory that is new to a process
// is several times as slow to fill.
class HostMemory {
 public:
  // Gives all of it out again: nothing of the copy before may be in use.
  void rewind() { next_ = 0; }

  struct Place {
    at::Tensor tensor;  // Its elements have any values.
    bool is_new = false;
  };
  // The n-th one since rewind(): the memory of the n-th one before when it is
  // of the same kind and shape.
  Place take(at::IntArrayRef sizes, const at::TensorOptions& options);

 private:
  std::vector<at::Tensor> tensors_;
  size_t next_ = 0;
};

// Tensors of a GPU go to pinned memory; blocks until they are there. A storage
// that its tensors cover is copied whole, so that tied weights stay tied; of a
// storage that is used in part only the tensors are copied. Throws ConfigError
// for a tensor that is undefined or not dense.
Tree host_copy(const Tree& tree, CpuTensors cpu_tensors, HostMemory& memory);
Tree host_copy(const Tree& tree, CpuTensors cpu_tensors);

}  // namespace lockstep::checkpoint
