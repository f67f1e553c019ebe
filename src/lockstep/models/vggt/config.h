// Sizes of VGGT.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace lockstep::vggt {

struct VggtConfig {
  // Image side that position embeddings were trained for. Others work if they
  // are multiples of the patch.
  int64_t image_size = 518;
  int64_t patch = 14;
  int64_t width = 1024;
  int64_t num_heads = 16;  // In all blocks; the camera head is twice as wide.
  int64_t vit_depth = 24;
  int64_t depth = 24;  // Pairs of a frame block and a global block.
  int64_t num_registers = 4;
  double rope_frequency = 100;
  int64_t camera_depth = 4;
  int64_t camera_iterations = 4;
  // DPT heads: channels, and the layers whose tokens they use.
  int64_t dpt_features = 256;
  int64_t dpt_hidden = 32;  // Channels of the second-to-last convolution.
  std::array<int64_t, 4> dpt_outs = {256, 512, 1024, 1024};
  std::array<int64_t, 4> dpt_layers = {4, 11, 17, 23};
};

// "vggt_1b", the published model, or "vggt_tiny", which has all its parts and
// runs in milliseconds. Throws ConfigError for other names.
VggtConfig vggt_preset(const std::string& name);

// Throws ConfigError for incompatible sizes.
void check_vggt_config(const VggtConfig& config);

// Tokens of an image before its patches: the camera's and the registers.
int64_t num_special_tokens(const VggtConfig& config);

}  // namespace lockstep::vggt
