// Settings of the recipe jit that do not depend on the kind of data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// The settings that both kinds of data use.
struct JitShared {
  std::string model = "JiT-B/4";
  int64_t image_size = 64;
  std::optional<int64_t> sample_steps =
      {};  // Unset: 50 for images, 20 for text.
  // Unset: by the name of the model.
  std::optional<int64_t> width = {};
  std::optional<int64_t> depth = {};
  std::optional<int64_t> num_heads = {};
};

}  // namespace lockstep
