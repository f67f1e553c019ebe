#include "lockstep/models/vggt/frozen.h"

#include <ATen/ATen.h>

#include "lockstep/tensor/tf32.h"

namespace lockstep::vggt {
namespace {

std::vector<at::Tensor> as_list(const VggtGeometry& geometry) {
  return {geometry.tokens, geometry.pose,
          geometry.points, geometry.points_confidence,
          geometry.depth,  geometry.depth_confidence};
}

VggtGeometry from_list(const std::vector<at::Tensor>& list) {
  return {.tokens = list[0],
          .pose = list[1],
          .points = list[2],
          .points_confidence = list[3],
          .depth = list[4],
          .depth_confidence = list[5]};
}

// The heads' maps are channels-last. Weights must be too, else each call copies
// them.
void lay_out_weights(Vggt& model) {
  for (const char* head : {"point_head", "depth_head"}) {
    for (at::Tensor& weight : model.named_children()[head]->parameters()) {
      if (weight.dim() != 4) continue;
      weight.set_data(weight.contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

}  // namespace

FrozenVggt::FrozenVggt(std::shared_ptr<Vggt> model, const VggtWants& wants)
    : model_(std::move(model)),
      graphs_([model = model_, wants](const auto& images) {
        return as_list(model->forward(images, wants));
      }) {
  const at::NoGradGuard no_grad;
  model_->eval();
  for (at::Tensor& parameter : model_->parameters()) {
    parameter.requires_grad_(false);
  }
  lay_out_weights(*model_);
}

VggtGeometry FrozenVggt::forward(const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const tensor::Tf32Convolutions as_in_the_original;
  return from_list(graphs_(images));
}

}  // namespace lockstep::vggt
