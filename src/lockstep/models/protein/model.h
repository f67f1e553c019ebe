// The model of the recipe protein: predicts fragments and torsions of side
// chains from the backbone.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "lockstep/models/protein/decoder.h"
#include "lockstep/models/protein/encoder.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

struct ProteinConfig {
  int64_t width = 256;
  int64_t encoder_depth = 3;
  int64_t decoder_depth = 3;
  int64_t num_heads = 8;
  int64_t num_neighbours = 30;
  int64_t num_torsion_bins = 72;
  double dropout = 0.1;
};

// Throws ConfigError, which names the recipe's flags, for incompatible sizes.
void check_protein_config(const ProteinConfig& config);

struct ProteinInput {
  at::Tensor coords = {};   // [B, L, 4, 3]: N, CA, C, O.
  at::Tensor lengths = {};  // int64 [B]: residues of each.
  at::Tensor fragments =
      {};  // int64 [B, M]: ids, kPadFragment behind the last.
};

class ProteinModel : public torch::nn::Module {
 public:
  explicit ProteinModel(const ProteinConfig& config);

  // coords have the type of the weights, dtype().
  FragmentLogits forward(const ProteinInput& input);

  // The two halves of forward(): a backbone is encoded once for many
  // predictions.
  at::Tensor encode(const ProteinInput& input);
  FragmentLogits decode(const ProteinInput& input, const at::Tensor& residues);

  at::ScalarType dtype() const;

 private:
  std::shared_ptr<BackboneEncoder> encoder_;
  std::shared_ptr<FragmentDecoder> decoder_;
};

}  // namespace lockstep::protein
