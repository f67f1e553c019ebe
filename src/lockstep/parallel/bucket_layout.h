// Which parameters travel together: checks of a BucketLayout.
#pragma once

#include <cstddef>

#include "lockstep/ddp.h"

namespace lockstep::parallel {

// Throws ConfigError unless every position below num_parameters occurs exactly
// once.
void check_layout(const BucketLayout& layout, size_t num_parameters);

}  // namespace lockstep::parallel
