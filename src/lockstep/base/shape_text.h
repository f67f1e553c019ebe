// Shapes of tensors in messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::base {

// "[2, 3]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace lockstep::base
