// The sizes of JiT by their names: "JiT-B/4" is size B with patches of 4 x 4.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::jit {

struct JitVariant {
  char size = 'B';
  int64_t patch = 16;
  int64_t width = 768;
  int64_t depth = 12;
  int64_t num_heads = 12;
};

// Sizes B, L and H with any patch. Throws ConfigError for other names.
JitVariant parse_jit_variant(const std::string& name);

}  // namespace lockstep::jit
