#include "lockstep/models/vggt/frozen.h"

#include <ATen/ATen.h>

#include "lockstep/tensor/tf32.h"

namespace lockstep {
namespace {

std::vector<at::Tensor> in_a_row(const VggtGeometry& geometry) {
  return {geometry.tokens, geometry.pose,
          geometry.points, geometry.points_confidence,
          geometry.depth,  geometry.depth_confidence};
}

VggtGeometry of_row(const std::vector<at::Tensor>& row) {
  return {.tokens = row[0],
          .pose = row[1],
          .points = row[2],
          .points_confidence = row[3],
          .depth = row[4],
          .depth_confidence = row[5]};
}

// The heads' maps have their channels together. Kernels want weights to lie
// alike, else each call copies them.
void lay_out_weights(Vggt& net) {
  for (const char* head : {"point_head", "depth_head"}) {
    for (at::Tensor& weight : net.named_children()[head]->parameters()) {
      if (weight.dim() != 4) continue;
      weight.set_data(weight.contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

}  // namespace

FrozenVggt::FrozenVggt(std::shared_ptr<Vggt> net, const VggtWants& wants)
    : net_(std::move(net)), replay_([model = net_, wants](const auto& images) {
        return in_a_row(model->forward(images, wants));
      }) {
  const at::NoGradGuard no_grad;
  net_->eval();
  for (at::Tensor& parameter : net_->parameters()) {
    parameter.requires_grad_(false);
  }
  lay_out_weights(*net_);
}

VggtGeometry FrozenVggt::forward(const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const Tf32Convolutions as_in_the_original;
  return of_row(replay_(images));
}

}  // namespace lockstep
