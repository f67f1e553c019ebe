// The language model LLaMA without its output layer: hidden states, not logits.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/kernels/rope.h"
#include "lockstep/models/llama/llama_config.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::llama {

class LlamaLayer;

// Parameters are named as published, without the prefix "model.". They have no
// memory until they are loaded (nn/weights.h). It computes in their type; means
// of norms and angles are float32, as in transformers. Not thread-safe.
class Llama : public torch::nn::Module {
 public:
  explicit Llama(const LlamaConfig& config);

  const LlamaConfig& config() const { return config_; }

  // ids: int64 [B, T]. mask: bool [B, T], true where a token is; undefined: all
  // are. Attention is causal. Returns the hidden state after the last norm, [B,
  // T, hidden_size]; values at padding are arbitrary.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& mask = {});

 private:
  const kernels::RopeTable& rope_of(const at::Tensor& hidden);

  LlamaConfig config_;
  nn::Embedding embed_tokens_{nullptr};
  std::vector<std::shared_ptr<LlamaLayer>> layers_;
  nn::RmsNorm norm_{nullptr};
  kernels::RopeTable rope_;  // Grows to the longest text.
};

}  // namespace lockstep::llama
