// All fragments of a structure from its backbone, in the manner of MaskGIT.
#pragma once

#include <cstdint>

#include "lockstep/models/protein/model.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

// What has no meaning in padding is 0 there, torsions -1.
struct FragmentGuess {
  at::Tensor fragments = {};      // int64 [B, M].
  at::Tensor probabilities = {};  // double [B, M]: of those, when chosen.
  at::Tensor torsions = {};       // int64 [B, M]: bins.
};

// Begins with every fragment hidden; of input.fragments only the number of
// each protein counts. After step k of `num_iterations` the k / num_iterations
// of the positions where the model is surest are kept for good and shown to the
// next step; of equally sure ones the first. Always the most likely fragment,
// so nothing is random; marks such as PAD are never chosen. Torsions are those
// of the last step.
FragmentGuess guess_fragments(ProteinModel& model, const ProteinInput& input,
                              int64_t num_iterations);

}  // namespace lockstep::protein
