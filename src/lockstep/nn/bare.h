// Layers whose weights come from files.
//
// They are born without memory: every parameter is one number, seen in the
// shape of the whole. A model of billions of numbers is built at once, and its
// weights go from the file straight to their place:
// parameter.set_data(tensor), on any device and in any type.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "lockstep/kernels/token_norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

// What such a parameter is before it has memory.
at::Tensor bare_tensor(at::IntArrayRef shape);

enum class Bias { kNo, kYes };

class BareLinear : public torch::nn::Module {
 public:
  BareLinear(int64_t in, int64_t out, Bias bias = Bias::kYes);

  at::Tensor forward(const at::Tensor& x);

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

class BareLayerNorm : public torch::nn::Module {
 public:
  BareLayerNorm(int64_t size, double eps);

  // x may have more bits than the weights: see norm_tokens().
  at::Tensor forward(const at::Tensor& x);

  const TokenNorm& norm() const { return norm_; }

 private:
  TokenNorm norm_;
};

struct BareConvConfig {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  Bias bias = Bias::kYes;
};

class BareConv2d : public torch::nn::Module {
 public:
  explicit BareConv2d(const BareConvConfig& config);

  at::Tensor forward(const at::Tensor& x);

 private:
  BareConvConfig config_;
  at::Tensor weight_;
  at::Tensor bias_;
};

class BareConvTranspose2d : public torch::nn::Module {
 public:
  explicit BareConvTranspose2d(const BareConvConfig& config);

  at::Tensor forward(const at::Tensor& x);

 private:
  BareConvConfig config_;
  at::Tensor weight_;
  at::Tensor bias_;
};

class BareEmbedding : public torch::nn::Module {
 public:
  BareEmbedding(int64_t rows, int64_t size);

  at::Tensor forward(const at::Tensor& ids);

 private:
  at::Tensor weight_;
};

// Gives every parameter and buffer that has none memory of its own, of any
// content. The type is that of the options.
void give_memory(torch::nn::Module& module, const at::TensorOptions& options);

// First weights for a model without a file, the same on every machine and
// device: 0 for what is called bias, 1 for other parameters of one dimension,
// for the rest normal draws whose size keeps that of what passes. All must have
// memory.
void fill_randomly(torch::nn::Module& module, uint64_t seed);

}  // namespace lockstep
