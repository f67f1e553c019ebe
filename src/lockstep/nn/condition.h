// What a sample as a whole tells its tokens: its time, and how to change.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>

#include <cstdint>
#include <string>

#include "lockstep/nn/embedding.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

struct TimeEmbedderConfig {
  TimeEmbeddingConfig waves = {};
  int64_t width = 384;
};

// Sines and cosines through two layers with a SiLU between them: t [B] ->
// [B, width]. Parameters: mlp.0, mlp.2, from N(0, 0.02^2).
class TimeEmbedder : public torch::nn::Module {
 public:
  explicit TimeEmbedder(const TimeEmbedderConfig& config);

  at::Tensor forward(const at::Tensor& times);

 private:
  TimeEmbedderConfig config_;
  torch::nn::Sequential mlp_{nullptr};
};

struct LabelEmbedderConfig {
  std::string name = "embedding";  // Of the table.
  int64_t num_classes = 10;        // One more stands for no class.
  int64_t width = 384;
};

// A vector for every label, int64 [B] -> [B, width]; from N(0, 0.02^2).
class LabelEmbedder : public torch::nn::Module {
 public:
  explicit LabelEmbedder(const LabelEmbedderConfig& config);

  at::Tensor forward(const at::Tensor& labels);

 private:
  torch::nn::Embedding table_{nullptr};
};

// SiLU and a linear layer to num_parts * width that begins as zero, so that
// blocks begin as the identity.
torch::nn::Sequential make_modulation(int64_t width, int64_t num_parts);

}  // namespace lockstep
