// A VGGT for inference.
#pragma once

#include <memory>

#include "lockstep/models/vggt/vggt.h"
#include "lockstep/tensor/cuda_graph_cache.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

class FrozenVggt {
 public:
  // The model has its weights on their device. Its parameters no longer require
  // gradients and must not be moved. Weights of convolutions become
  // channels-last; names, shapes and values stay.
  FrozenVggt(std::shared_ptr<Vggt> model, const VggtWants& wants);

  // As Vggt::forward(), without gradients. On a GPU convolutions, most of the
  // heads' work, run in TF32 as in the original, whatever precision the
  // training sets; the launches of a shape are captured at its second call (see
  // CudaGraphCache).
  VggtGeometry forward(const at::Tensor& images);

  const Vggt& model() const { return *model_; }
  const tensor::CudaGraphCache& graphs() const { return graphs_; }

 private:
  std::shared_ptr<Vggt> model_;
  tensor::CudaGraphCache graphs_;
};

}  // namespace lockstep::vggt
