#include "lockstep/models/vggt/config.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::vggt {
namespace {

VggtConfig tiny_vggt() {
  return {.image_size = 28,
          .width = 16,
          .num_heads = 2,
          .vit_depth = 2,
          .depth = 4,
          .num_registers = 2,
          .camera_depth = 1,
          .dpt_features = 8,
          .dpt_hidden = 4,
          .dpt_outs = {4, 8, 8, 8},
          .dpt_layers = {0, 1, 2, 3}};
}

void require_multiple(const char* what, int64_t value, int64_t of) {
  if (value > 0 && of > 0 && value % of == 0) return;
  throw ConfigError(fmt::format("VGGT: {} must be a multiple of {}, it is {}",
                                what, of, value));
}

void require_at_least(const char* what, int64_t value, int64_t least) {
  if (value >= least) return;
  throw ConfigError(fmt::format("VGGT: {} must be at least {}, it is {}", what,
                                least, value));
}

}  // namespace

VggtConfig vggt_preset(const std::string& name) {
  if (name == "vggt_1b") return {};
  if (name == "vggt_tiny") return tiny_vggt();
  throw ConfigError(fmt::format(
      "no VGGT is called '{}': there are vggt_1b and vggt_tiny", name));
}

void check_vggt_config(const VggtConfig& config) {
  require_at_least("num_heads", config.num_heads, 1);
  require_at_least("vit_depth", config.vit_depth, 1);
  // The mean token is taken over the last two.
  require_at_least("depth", config.depth, 2);
  require_at_least("num_registers", config.num_registers, 0);
  require_at_least("camera_depth", config.camera_depth, 1);
  require_at_least("camera_iterations", config.camera_iterations, 1);
  require_at_least("dpt_hidden", config.dpt_hidden, 1);
  require_multiple("image_size", config.image_size, config.patch);
  // Rows and columns rotate half of a head each, in pairs of channels.
  require_multiple("width", config.width, 4 * config.num_heads);
  // Sines and cosines of row and column take a quarter each.
  require_multiple("dpt_features", config.dpt_features, 8);
  for (const int64_t channels : config.dpt_outs) {
    require_multiple("dpt_outs", channels, 4);
  }
  for (const int64_t layer : config.dpt_layers) {
    if (layer >= 0 && layer < config.depth) continue;
    throw ConfigError(
        fmt::format("VGGT: dpt_layers has {}, there are layers 0 "
                    "to {}",
                    layer, config.depth - 1));
  }
}

int64_t num_special_tokens(const VggtConfig& config) {
  return 1 + config.num_registers;
}

}  // namespace lockstep::vggt
