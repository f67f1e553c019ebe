// A graph network over residues: encodes a backbone as one vector per residue.
//
// Parameters have the names and shapes of the Python project protein_mdm.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <memory>

#include "lockstep/models/protein/graph.h"
#include "lockstep/nn/linear.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

struct BackboneEncoderConfig {
  int64_t width = 256;
  int64_t depth = 3;
  int64_t num_neighbours = 30;
  double dropout = 0.1;
};

class BackboneEncoder : public torch::nn::Module {
 public:
  explicit BackboneEncoder(const BackboneEncoderConfig& config);

  // coords [B, L, 4, 3], lengths int64 [B] -> [B, L, width]. Rows of padding
  // are arbitrary.
  at::Tensor forward(const at::Tensor& coords, const at::Tensor& lengths);

 private:
  class AngleEncoder;
  class DistanceEncoder;
  class GraphLayer;

  BackboneEncoderConfig config_;
  std::shared_ptr<AngleEncoder> angles_;
  std::shared_ptr<DistanceEncoder> distances_;
  nn::Linear node_proj_{nullptr};
  torch::nn::ModuleList layers_{nullptr};
  torch::nn::ModuleList norms_{nullptr};
};

}  // namespace lockstep::protein
