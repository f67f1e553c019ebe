#include "lockstep/nn/bare.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <vector>

#include "lockstep/random.h"

namespace lockstep {
namespace {

// A module without a bias registers none: names are those of the file.
at::Tensor register_bias(torch::nn::Module& module, Bias bias, int64_t size) {
  if (bias == Bias::kNo) return {};
  return module.register_parameter("bias", bare_tensor({size}));
}

bool is_bare(const at::Tensor& tensor) {
  return tensor.numel() > 1 &&
         tensor.storage().nbytes() < static_cast<size_t>(tensor.nbytes());
}

bool is_named_bias(const std::string& name) {
  const auto dot = name.rfind('.');
  return name.substr(dot == std::string::npos ? 0 : dot + 1) == "bias";
}

at::Tensor normal_draws(const at::Tensor& like, uint64_t seed,
                        uint64_t stream) {
  RandomStream random(seed, stream);
  // What comes in and what goes out are equally large.
  const auto inputs = static_cast<double>(like.numel() / like.size(0));
  const double deviation = 1 / std::sqrt(inputs);
  std::vector<float> draws(static_cast<size_t>(like.numel()));
  for (float& draw : draws) {
    draw = static_cast<float>(deviation * random.normal());
  }
  return at::tensor(draws).view(like.sizes());
}

}  // namespace

at::Tensor bare_tensor(at::IntArrayRef shape) {
  return at::zeros({1}).expand(shape);
}

BareLinear::BareLinear(int64_t in, int64_t out, Bias bias)
    : weight_(register_parameter("weight", bare_tensor({out, in}))),
      bias_(register_bias(*this, bias, out)) {}

at::Tensor BareLinear::forward(const at::Tensor& x) {
  return at::linear(x, weight_, bias_);
}

BareLayerNorm::BareLayerNorm(int64_t size, double eps)
    : norm_{.weight = register_parameter("weight", bare_tensor({size})),
            .bias = register_parameter("bias", bare_tensor({size})),
            .eps = eps} {}

at::Tensor BareLayerNorm::forward(const at::Tensor& x) {
  return norm_tokens(x, norm_);
}

BareConv2d::BareConv2d(const BareConvConfig& config)
    : config_(config),
      weight_(register_parameter(
          "weight",
          bare_tensor({config.out, config.in, config.kernel, config.kernel}))),
      bias_(register_bias(*this, config.bias, config.out)) {}

at::Tensor BareConv2d::forward(const at::Tensor& x) {
  return at::conv2d(x, weight_, bias_, config_.stride, config_.padding);
}

BareConvTranspose2d::BareConvTranspose2d(const BareConvConfig& config)
    : config_(config),
      weight_(register_parameter(
          "weight",
          bare_tensor({config.in, config.out, config.kernel, config.kernel}))),
      bias_(register_bias(*this, config.bias, config.out)) {}

at::Tensor BareConvTranspose2d::forward(const at::Tensor& x) {
  return at::conv_transpose2d(x, weight_, bias_, config_.stride,
                              config_.padding);
}

BareEmbedding::BareEmbedding(int64_t rows, int64_t size)
    : weight_(register_parameter("weight", bare_tensor({rows, size}))) {}

at::Tensor BareEmbedding::forward(const at::Tensor& ids) {
  return at::embedding(weight_, ids);
}

void give_memory(torch::nn::Module& module, const at::TensorOptions& options) {
  const at::NoGradGuard no_grad;
  const auto fill = [&](at::Tensor tensor) {
    // One number is its own memory, of the type of its birth.
    if (is_bare(tensor) || tensor.numel() == 1) {
      tensor.set_data(at::empty(tensor.sizes(), options));
    }
  };
  for (const auto& parameter : module.parameters()) fill(parameter);
  for (const auto& buffer : module.buffers()) fill(buffer);
}

void fill_randomly(torch::nn::Module& module, uint64_t seed) {
  const at::NoGradGuard no_grad;
  uint64_t stream = 0;
  for (const auto& entry : module.named_parameters()) {
    at::Tensor parameter = entry.value();
    ++stream;
    if (is_named_bias(entry.key())) {
      parameter.zero_();
    } else if (parameter.dim() == 1) {
      parameter.fill_(1);
    } else {
      parameter.copy_(normal_draws(parameter, seed, stream));
    }
  }
}

}  // namespace lockstep
