// Losses and accuracy of predicted fragments and torsions.
#pragma once

#include <cstdint>

#include "lockstep/models/protein/decoder.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

// A torsion at most this many bins off counts as near.
constexpr int64_t kNearTorsionBins = 2;

struct ProteinTargets {
  at::Tensor fragments = {};  // int64 [B, M].
  at::Tensor is_hidden = {};  // bool [B, M]: fragments that are scored.
  at::Tensor torsions = {};   // int64 [B, M]: bins; -1: not scored.
};

// Cross entropies, summed per protein: [B].
struct ProteinLosses {
  at::Tensor fragments = {};
  at::Tensor torsions = {};
};

ProteinLosses protein_losses(const FragmentLogits& logits,
                             const ProteinTargets& targets);

// Number of correct predictions per protein: int64 [B].
struct ProteinHits {
  at::Tensor fragments = {};
  at::Tensor torsions = {};       // In the same bin.
  at::Tensor near_torsions = {};  // At most two bins off, around the circle.
};

ProteinHits protein_hits(const FragmentLogits& logits,
                         const ProteinTargets& targets);

}  // namespace lockstep::protein
