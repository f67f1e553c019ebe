// Chooses the fragments to mask.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/random.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

struct MaskingConfig {
  // "random": a part of the fragments, at least one. "block": three runs of
  // five, which may overlap.
  std::string strategy = "random";
  double ratio = 0.15;
};

// is_fragment bool [B, M], true for the first ones of a row -> bool [B, M].
// Padding is never hidden. A row depends on its sample's draws alone, not on
// how far it is padded.
at::Tensor draw_hidden(const at::Tensor& is_fragment,
                       const MaskingConfig& config, SampleRandom& random);

}  // namespace lockstep::protein
