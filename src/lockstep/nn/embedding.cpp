#include "lockstep/nn/embedding.h"

#include <ATen/ops/embedding.h>
#include <torch/nn/init.h>

#include "lockstep/nn/weights.h"

namespace lockstep::nn {
namespace {

constexpr double kDeviation = 0.02;

}  // namespace

EmbeddingImpl::EmbeddingImpl(int64_t num_embeddings, int64_t width) {
  weight = register_parameter("weight", new_weight({num_embeddings, width}));
  if (!UninitialisedWeights::in_scope()) torch::nn::init::normal_(weight);
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) {
  return at::embedding(weight, ids);
}

LabelEmbedder::LabelEmbedder(const LabelEmbedderConfig& config) {
  table_ = register_module(config.name,
                           Embedding(config.num_classes + 1, config.width));
  torch::nn::init::normal_(table_->weight, 0, kDeviation);
}

at::Tensor LabelEmbedder::forward(const at::Tensor& labels) {
  return table_->forward(labels);
}

TimeEmbedder::TimeEmbedder(const TimeEmbedderConfig& config) : config_(config) {
  mlp_ = register_module("mlp", std::make_shared<Mlp>(MlpConfig{
                                    .width = config.waves.width,
                                    .hidden = config.width,
                                    .out = config.width,
                                    .activation = Activation::kSilu,
                                    .names = {.first = "0", .last = "2"}}));
  for (const auto& layer : mlp_->children()) {
    auto* linear = layer->as<Linear>();
    torch::nn::init::normal_(linear->weight, 0, kDeviation);
    torch::nn::init::zeros_(linear->bias);
  }
}

at::Tensor TimeEmbedder::forward(const at::Tensor& times) {
  return mlp_->forward(time_embedding(times, config_.waves));
}

}  // namespace lockstep::nn
