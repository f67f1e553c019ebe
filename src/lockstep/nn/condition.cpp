#include "lockstep/nn/condition.h"

#include <torch/torch.h>

namespace lockstep {

TimeEmbedder::TimeEmbedder(const TimeEmbedderConfig& config) : config_(config) {
  torch::nn::Linear first(config.waves.width, config.width);
  torch::nn::Linear second(config.width, config.width);
  for (auto& linear : {first, second}) {
    torch::nn::init::normal_(linear->weight, 0, 0.02);
    torch::nn::init::zeros_(linear->bias);
  }
  mlp_ = register_module(
      "mlp", torch::nn::Sequential(first, torch::nn::SiLU(), second));
}

at::Tensor TimeEmbedder::forward(const at::Tensor& times) {
  return mlp_->forward(time_embedding(times, config_.waves));
}

LabelEmbedder::LabelEmbedder(const LabelEmbedderConfig& config) {
  table_ = register_module(
      config.name, torch::nn::Embedding(config.num_classes + 1, config.width));
  torch::nn::init::normal_(table_->weight, 0, 0.02);
}

at::Tensor LabelEmbedder::forward(const at::Tensor& labels) {
  return table_->forward(labels);
}

torch::nn::Sequential make_modulation(int64_t width, int64_t num_parts) {
  torch::nn::Linear linear(width, num_parts * width);
  torch::nn::init::zeros_(linear->weight);
  torch::nn::init::zeros_(linear->bias);
  return torch::nn::Sequential(torch::nn::SiLU(), linear);
}

}  // namespace lockstep
