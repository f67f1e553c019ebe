// A VGGT that is not trained, prepared for many calls.
#pragma once

#include <memory>

#include "lockstep/models/vggt/vggt.h"
#include "lockstep/tensor/cuda_graph_cache.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

class FrozenVggt {
 public:
  // The net has its weights, on their device; it gets no gradients from here
  // on, and weights may not move. Weights of convolutions are laid out for
  // their kernels; names, shapes and values stay.
  FrozenVggt(std::shared_ptr<Vggt> net, const VggtWants& wants);

  // As Vggt::forward(), without gradients. On a GPU convolutions, most of the
  // heads' work, run in TF32 as in the original, whatever precision the
  // training sets; a shape's launches are recorded at its second call (see
  // CudaGraphCache).
  VggtGeometry forward(const at::Tensor& images);

  const Vggt& net() const { return *net_; }
  const CudaGraphCache& replay() const { return replay_; }

 private:
  std::shared_ptr<Vggt> net_;
  CudaGraphCache replay_;
};

}  // namespace lockstep
