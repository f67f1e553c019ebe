#include "lockstep/models/protein/decoder.h"

#include <torch/torch.h>

#include <cmath>

#include "lockstep/nn/decoder_layer.h"
#include "lockstep/nn/init.h"
#include "lockstep/nn/norm.h"

namespace lockstep::protein {
namespace {

constexpr int64_t kNumStoredPositions = 1000;
constexpr int64_t kFeedForwardRatio = 4;

// Sines in even channels, cosines in odd ones: [1, count, width].
at::Tensor wave_table(int64_t count, int64_t width) {
  const at::Tensor rates =
      at::exp(torch::arange(0, width, 2, torch::kFloat) *
              (-std::log(10000.0) / static_cast<double>(width)));
  const at::Tensor angles =
      torch::arange(count, torch::kFloat).unsqueeze(1) * rates;
  return at::stack({angles.sin(), angles.cos()}, -1)
      .flatten(1)
      .slice(1, 0, width)
      .unsqueeze(0)
      .contiguous();
}

}  // namespace

class FragmentDecoder::Positions : public torch::nn::Module {
 public:
  explicit Positions(int64_t width) {
    table_ = register_buffer("pe", wave_table(kNumStoredPositions, width));
  }

  // The table in checkpoints has 1000 positions; more are computed when needed.
  at::Tensor first(int64_t count) {
    if (count <= table_.size(1)) return table_.slice(1, 0, count);
    if (!longer_.defined() || longer_.size(1) < count ||
        longer_.options().device() != table_.device()) {
      longer_ = wave_table(2 * count, table_.size(2)).to(table_.options());
    }
    return longer_.slice(1, 0, count);
  }

 private:
  at::Tensor table_;
  at::Tensor longer_;
};

class FragmentDecoder::Layers : public torch::nn::Module {
 public:
  explicit Layers(const FragmentDecoderConfig& config) {
    layers_ = register_module("layers", torch::nn::ModuleList());
    for (int64_t i = 0; i < config.depth; ++i) {
      layers_->push_back(
          std::make_shared<nn::DecoderLayer>(nn::DecoderLayerConfig{
              .width = config.width,
              .num_heads = config.num_heads,
              .feed_forward = kFeedForwardRatio * config.width,
              .dropout = config.dropout}));
    }
  }

  at::Tensor forward(at::Tensor x, const at::Tensor& residues,
                     const DecoderMasks& masks) {
    for (const auto& layer : *layers_) {
      x = layer->as<nn::DecoderLayer>()->forward(
          x, residues, {.self = masks.is_fragment, .cross = masks.is_residue});
    }
    return x;
  }

 private:
  torch::nn::ModuleList layers_{nullptr};
};

// The numbers are those of the original's Sequential.
class FragmentDecoder::Head : public torch::nn::Module {
 public:
  Head(const FragmentDecoderConfig& config, int64_t num_outputs)
      : dropout_(config.dropout) {
    norm_ = register_module("0", nn::LayerNorm(config.width));
    first_ = register_module("1", nn::Linear(config.width, config.width));
    last_ = register_module("4", nn::Linear(config.width, num_outputs));
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = at::gelu(first_->forward(norm_->forward(x)));
    if (dropout_ > 0) y = at::dropout(y, dropout_, is_training());
    return last_->forward(y);
  }

 private:
  double dropout_;
  nn::LayerNorm norm_{nullptr};
  nn::Linear first_{nullptr};
  nn::Linear last_{nullptr};
};

FragmentDecoder::FragmentDecoder(const FragmentDecoderConfig& config)
    : config_(config) {
  embedding_ = register_module("fragment_embedding",
                               nn::Embedding(config.vocabulary, config.width));
  torch::nn::init::normal_(embedding_->weight, 0, 0.02);
  positions_ =
      register_module("pos_encoder", std::make_shared<Positions>(config.width));
  layers_ =
      register_module("transformer_layers", std::make_shared<Layers>(config));
  encoder_proj_ =
      register_module("encoder_proj", nn::Linear(config.width, config.width));
  type_head_ = register_module(
      "type_head", std::make_shared<Head>(config, config.vocabulary));
  torsion_head_ = register_module(
      "torsion_head", std::make_shared<Head>(config, config.num_torsion_bins));
  nn::reset_linear_layers(*this);
}

FragmentLogits FragmentDecoder::forward(const at::Tensor& fragments,
                                        const at::Tensor& residues,
                                        const DecoderMasks& masks) {
  at::Tensor x =
      embedding_->forward(fragments) + positions_->first(fragments.size(1));
  if (config_.dropout > 0) x = at::dropout(x, config_.dropout, is_training());
  const auto for_all = [](const at::Tensor& mask) {
    return mask.unsqueeze(1).unsqueeze(1);
  };
  x = layers_->forward(x, encoder_proj_->forward(residues),
                       {.is_fragment = for_all(masks.is_fragment),
                        .is_residue = for_all(masks.is_residue)});
  return {.fragments = type_head_->forward(x),
          .torsions = torsion_head_->forward(x)};
}

}  // namespace lockstep::protein
