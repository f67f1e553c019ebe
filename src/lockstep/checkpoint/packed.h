// A tree as one run of bytes, to keep it in memory or send it to another rank.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/checkpoint.h"

namespace lockstep::checkpoint {

// Throws ConfigError for tensors that cannot be saved.
std::string pack(const Tree& tree);

// The tensors have memory of their own. Throws FormatError for other bytes.
Tree unpack(std::string_view bytes);

}  // namespace lockstep::checkpoint
