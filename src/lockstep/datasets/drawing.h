// What the generated image data sets draw with.
#pragma once

#include <array>

#include "lockstep/random.h"

namespace lockstep::datasets {

using Colour = std::array<double, 3>;  // Red, green, blue.

// Uniform in [low, high).
inline double draw_between(RandomStream& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

}  // namespace lockstep::datasets
