#include "lockstep/models/protein/encoder.h"

#include <torch/torch.h>

#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"

namespace lockstep::protein {
namespace {

constexpr int64_t kNumAngleParts = 6;
constexpr int64_t kAngleWidth = 64;
constexpr int64_t kNumDistances = 32;
constexpr double kLongest = 20;  // Angstrom.
constexpr int64_t kEdgeWidth = kNumDistances + 3;

// Linear, LayerNorm, ReLU, dropout, Linear; the numbers are those of the
// original's Sequential.
class Perceptron : public torch::nn::Module {
 public:
  Perceptron(int64_t inputs, int64_t width, double dropout)
      : dropout_(dropout) {
    first = register_module("0", nn::Linear(inputs, width));
    norm_ = register_module("1", nn::LayerNorm(width));
    last = register_module("4", nn::Linear(width, width));
  }

  // The layers between the linear layers.
  at::Tensor activate(const at::Tensor& x) {
    at::Tensor y = norm_->forward(x).relu_();
    if (dropout_ > 0) y = at::dropout(y, dropout_, is_training());
    return y;
  }

  nn::Linear first{nullptr};
  nn::Linear last{nullptr};

 private:
  double dropout_;
  nn::LayerNorm norm_{nullptr};
};

}  // namespace

class BackboneEncoder::AngleEncoder : public torch::nn::Module {
 public:
  AngleEncoder() {
    proj_ = register_module("proj", nn::Linear(kNumAngleParts, kAngleWidth));
  }

  at::Tensor forward(const at::Tensor& angles) {
    return proj_->forward(angles);
  }

 private:
  nn::Linear proj_{nullptr};
};

class BackboneEncoder::DistanceEncoder : public torch::nn::Module {
 public:
  DistanceEncoder() {
    centers_ =
        register_buffer("centers", torch::linspace(0, kLongest, kNumDistances));
    width_ = register_buffer(
        "width", torch::tensor(kLongest / kNumDistances, torch::kFloat));
  }

  // [...] -> [..., 32]: radial basis functions.
  at::Tensor forward(const at::Tensor& distances) {
    return (distances.unsqueeze(-1) - centers_)
        .div_(width_)
        .square_()
        .mul_(-0.5)
        .exp_();
  }

 private:
  at::Tensor centers_;
  at::Tensor width_;
};

class BackboneEncoder::GraphLayer : public torch::nn::Module {
 public:
  explicit GraphLayer(const BackboneEncoderConfig& config) {
    const int64_t width = config.width;
    messages_ = register_module(
        "msg_mlp", std::make_shared<Perceptron>(width + kEdgeWidth, width,
                                                config.dropout));
    update_ = register_module(
        "update_mlp",
        std::make_shared<Perceptron>(2 * width, width, config.dropout));
  }

  // nodes [B, L, width], edges [B, L, K, 35].
  at::Tensor forward(const at::Tensor& nodes, const at::Tensor& edges,
                     const ProteinGraph& graph) {
    const at::Tensor heard = messages(nodes, edges, graph);
    const at::Tensor both =
        update_->first->forward(at::cat({nodes, heard}, -1));
    return update_->last->forward(update_->activate(both));
  }

 private:
  // The sum of first.weight * [node of the sender, edge] over incoming edges,
  // with less work: a sender's part is computed once for all of its edges, and
  // the last layer is linear, so it is applied after the sum.
  at::Tensor messages(const at::Tensor& nodes, const at::Tensor& edges,
                      const ProteinGraph& graph) {
    const int64_t width = nodes.size(2);
    const at::Tensor& weight = messages_->first->weight;
    const at::Tensor of_sender =
        at::linear(nodes, weight.slice(1, 0, width), messages_->first->bias);
    const at::Tensor inner =
        at::linear(edges, weight.slice(1, width)).add_(of_sender.unsqueeze(2));
    const at::Tensor sums =
        sum_incoming(messages_->activate(inner.view({-1, width})), graph);
    const at::Tensor num_incoming =
        graph.offsets.slice(0, 0, graph.num_nodes() + 1).diff().unsqueeze(1);
    const nn::Linear& last = messages_->last;
    return (at::linear(sums, last->weight) + num_incoming * last->bias)
        .view(nodes.sizes());
  }

  std::shared_ptr<Perceptron> messages_;
  std::shared_ptr<Perceptron> update_;
};

BackboneEncoder::BackboneEncoder(const BackboneEncoderConfig& config)
    : config_(config) {
  angles_ =
      register_module("dihedral_encoder", std::make_shared<AngleEncoder>());
  distances_ =
      register_module("rbf_encoder", std::make_shared<DistanceEncoder>());
  node_proj_ =
      register_module("node_proj", nn::Linear(kAngleWidth, config.width));
  layers_ = register_module("gnn_layers", torch::nn::ModuleList());
  norms_ = register_module("layer_norms", torch::nn::ModuleList());
  for (int64_t i = 0; i < config.depth; ++i) {
    layers_->push_back(std::make_shared<GraphLayer>(config));
    norms_->push_back(nn::LayerNorm(config.width));
  }
}

at::Tensor BackboneEncoder::forward(const at::Tensor& coords,
                                    const at::Tensor& lengths) {
  const ProteinGraph graph =
      nearest_residues(coords, lengths, config_.num_neighbours);
  const at::Tensor edges =
      at::cat({distances_->forward(graph.distances), graph.directions}, -1);
  at::Tensor nodes =
      node_proj_->forward(angles_->forward(backbone_angles(coords, lengths)));
  for (size_t i = 0; i < layers_->size(); ++i) {
    const at::Tensor more =
        layers_->ptr<GraphLayer>(i)->forward(nodes, edges, graph);
    nodes = norms_->ptr<nn::LayerNormImpl>(i)->forward(more + nodes);
  }
  return nodes;
}

}  // namespace lockstep::protein
