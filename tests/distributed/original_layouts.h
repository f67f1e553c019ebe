// The checkpoints of the five original trainings, as their projects write them.
#pragma once

#include <string>

#include "lockstep/checkpoint_layout.h"

namespace lockstep::testing {

struct OriginalLayout {
  FileNames files = {};
  CheckpointLayout checkpoint = {};
};

// "jit", "jit_images", "dit" (that of the recipe), "scribble", "protein",
// "atlas"; any other name: Lockstep's own. The probe's "first." and "last."
// stand for protein's encoder and decoder.
OriginalLayout original_layout(const std::string& name);

}  // namespace lockstep::testing
