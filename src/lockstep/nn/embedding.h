// Embeddings of tokens, class labels and times.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/nn/mlp.h"
#include "lockstep/nn/sinusoidal_embedding.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

// torch::nn::Embedding whose weights may be loaded later (weights.h).
class EmbeddingImpl : public torch::nn::Module {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t width);

  // int64 [...] -> [..., width]
  at::Tensor forward(const at::Tensor& ids);

  at::Tensor weight;
};
TORCH_MODULE(Embedding);

struct LabelEmbedderConfig {
  std::string name = "embedding";  // Name of the table in checkpoints.
  int64_t num_classes = 10;        // Without the extra "no class" label.
  int64_t width = 384;
};

// Embeds labels, int64 [B] -> [B, width]; initialised from N(0, 0.02^2).
class LabelEmbedder : public torch::nn::Module {
 public:
  explicit LabelEmbedder(const LabelEmbedderConfig& config);

  at::Tensor forward(const at::Tensor& labels);

 private:
  Embedding table_{nullptr};
};

struct TimeEmbedderConfig {
  TimeEmbeddingConfig waves = {};
  int64_t width = 384;
};

// Sinusoidal embedding, then Linear, SiLU, Linear: t [B] -> [B, width].
// Parameters: mlp.0, mlp.2, initialised from N(0, 0.02^2).
class TimeEmbedder : public torch::nn::Module {
 public:
  explicit TimeEmbedder(const TimeEmbedderConfig& config);

  at::Tensor forward(const at::Tensor& times);

 private:
  TimeEmbedderConfig config_;
  std::shared_ptr<Mlp> mlp_;
};

}  // namespace lockstep::nn
