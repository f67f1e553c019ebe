// Predicts all fragments of a structure from its backbone, as MaskGIT does.
#pragma once

#include <cstdint>

#include "lockstep/models/protein/model.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

// In padding values are 0, torsions -1.
struct FragmentGuess {
  at::Tensor fragments = {};      // int64 [B, M].
  at::Tensor probabilities = {};  // double [B, M]: when chosen.
  at::Tensor torsions = {};       // int64 [B, M]: bins.
};

// Starts with every fragment masked; input.fragments only gives their number.
// After step k of `num_iterations` the k / num_iterations most confident
// positions are fixed and shown to the next step; ties go to the first. Takes
// the most likely fragment, so the result is deterministic; special tokens such
// as PAD are never chosen. Torsions are those of the last step.
FragmentGuess guess_fragments(ProteinModel& model, const ProteinInput& input,
                              int64_t num_iterations);

}  // namespace lockstep::protein
