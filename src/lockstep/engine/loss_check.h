// Mistakes in what a recipe's loss() returns.
#pragma once

#include <string>

#include "lockstep/loss.h"

namespace lockstep::engine {

// Throws ConfigError with the recipe's name, the tensor and its shape. Nothing
// is read from the device.
void check_loss(const Loss& loss, const std::string& recipe);

}  // namespace lockstep::engine
