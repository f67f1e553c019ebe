// DiT: a transformer over patches of an image that predicts the velocity of a
// rectified flow (arXiv 2212.09748, registers 2309.16588).
//
// Parameters have the names and shapes of the Python project Just-a-DiT, whose
// state dicts it reads and writes. Peculiarities of that project are part of
// the model: RMSNorm with one scalar gain, times from 0 to 1 with a longest
// period of 10, and a final layer with shift and scale swapped.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <memory>

#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {
class AdaLnFinalLayer;
class LabelEmbedder;
class TimeEmbedder;
}  // namespace lockstep::nn

namespace lockstep::dit {

struct DitConfig {
  int64_t image_size = 32;
  int64_t patch = 2;
  int64_t channels = 3;
  int64_t width = 384;
  int64_t depth = 12;
  int64_t num_heads = 6;
  int64_t num_classes = 10;
  int64_t num_registers = 0;
};

// Throws ConfigError, which names the recipe's flags, for incompatible sizes.
void check_dit_config(const DitConfig& config);

// Multiplications and additions of one forward pass of one image.
double dit_forward_flops(const DitConfig& config);

class Dit : public torch::nn::Module {
 public:
  explicit Dit(const DitConfig& config);

  // images [B, C, S, S], times [B] in [0, 1], labels int64 [B], of which
  // num_classes stands for "no class" -> velocities, shaped as the images.
  at::Tensor forward(const at::Tensor& images, const at::Tensor& times,
                     const at::Tensor& labels);

  const DitConfig& config() const { return config_; }
  at::ScalarType dtype() const { return pos_embed_.scalar_type(); }

 private:
  class PatchEmbedder;

  DitConfig config_;
  at::Tensor register_tokens_;
  at::Tensor pos_embed_;
  std::shared_ptr<PatchEmbedder> x_embedder_;
  std::shared_ptr<nn::TimeEmbedder> t_embedder_;
  std::shared_ptr<nn::LabelEmbedder> y_embedder_;
  torch::nn::ModuleList blocks_{nullptr};
  std::shared_ptr<nn::AdaLnFinalLayer> final_layer_;
};

}  // namespace lockstep::dit
