// TF32 in float32 convolutions on a GPU.
#pragma once

#include <ATen/Context.h>

namespace lockstep::tensor {

// Lets cuDNN compute float32 convolutions in TF32 until the end of the scope,
// which is PyTorch's default and several times as fast; what was set before
// comes back then. For third-party networks that were run so, in programs that
// train in full float32. Matrix products stay as they are set. The setting is
// libtorch's and belongs to the whole process: no other thread may run
// convolutions in the scope.
class Tf32Convolutions {
 public:
  Tf32Convolutions();
  ~Tf32Convolutions();
  Tf32Convolutions(const Tf32Convolutions&) = delete;
  Tf32Convolutions& operator=(const Tf32Convolutions&) = delete;

 private:
  at::Float32Precision saved_;
};

}  // namespace lockstep::tensor
