// A transformer over fragments of side chains with cross-attention to residues:
// predicts the fragment of each position and its torsion.
//
// Parameters have the names and shapes of the Python project protein_mdm, whose
// layers are torch's nn.TransformerDecoderLayer. Attention is not causal.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <memory>

#include "lockstep/nn/embedding.h"
#include "lockstep/nn/linear.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

struct FragmentDecoderConfig {
  int64_t width = 256;
  int64_t depth = 3;
  int64_t num_heads = 8;  // Divides the width.
  int64_t vocabulary = 16;
  int64_t num_torsion_bins = 72;
  double dropout = 0.1;
};

struct FragmentLogits {
  at::Tensor fragments = {};  // [B, M, vocabulary].
  at::Tensor torsions = {};   // [B, M, bins].
};

// Bool [B, N]: true where attended to. At least one per row.
struct DecoderMasks {
  at::Tensor is_fragment = {};
  at::Tensor is_residue = {};
};

class FragmentDecoder : public torch::nn::Module {
 public:
  explicit FragmentDecoder(const FragmentDecoderConfig& config);

  // fragments int64 [B, M], residues [B, L, width].
  FragmentLogits forward(const at::Tensor& fragments,
                         const at::Tensor& residues, const DecoderMasks& masks);

 private:
  class Positions;
  class Layers;
  class Head;

  FragmentDecoderConfig config_;
  nn::Embedding embedding_{nullptr};
  std::shared_ptr<Positions> positions_;
  std::shared_ptr<Layers> layers_;
  nn::Linear encoder_proj_{nullptr};
  std::shared_ptr<Head> type_head_;
  std::shared_ptr<Head> torsion_head_;
};

}  // namespace lockstep::protein
