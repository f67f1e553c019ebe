// The language model LLaMA without its last layer: what it thinks of a text,
// not which word comes next.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/models/llama/llama_config.h"
#include "lockstep/nn/bare.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

class LlamaLayer;
class LlamaNorm;

// The turns of queries and keys at places 0, 1, ...: [T, head_size] each.
struct LlamaRotations {
  at::Tensor cos = {};
  at::Tensor sin = {};
};

// Parameters are named as published, without the prefix "model.". They are born
// without memory (nn/bare.h). It computes in their type; means of norms and
// angles are float32, as with transformers. Not safe for use by several threads
// at once.
class Llama : public torch::nn::Module {
 public:
  explicit Llama(const LlamaConfig& config);

  const LlamaConfig& config() const { return config_; }

  // ids: int64 [B, T]. mask: bool [B, T], true where a token is; undefined: all
  // are. A token sees itself and the tokens before it. Gives the hidden state
  // after the last norm, [B, T, hidden_size]; what stands at padding means
  // nothing.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& mask = {});

 private:
  const LlamaRotations& rotations_of(const at::Tensor& hidden);

  LlamaConfig config_;
  std::shared_ptr<BareEmbedding> embed_tokens_;
  std::vector<std::shared_ptr<LlamaLayer>> layers_;
  std::shared_ptr<LlamaNorm> norm_;
  LlamaRotations rotations_;  // As many places as were needed last.
};

// How fast each pair of a head turns, float32 [head_size / 2].
at::Tensor llama_speeds(const LlamaConfig& config);

}  // namespace lockstep
