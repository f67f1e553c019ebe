#include "lockstep/models/atlas/geometry_encoder.h"

#include <torch/torch.h>

#include <vector>

#include "lockstep/nn/norm.h"

namespace lockstep::atlas {
namespace {

constexpr int64_t kViewPoseSize = 9;

torch::nn::Conv1d conv1x1(int64_t inputs, int64_t outputs) {
  return torch::nn::Conv1d(torch::nn::Conv1dOptions(inputs, outputs, 1));
}

// libtorch's Linear: adding the bias separately affects the last bits.
torch::nn::Sequential make_perceptron(int64_t inputs, int64_t outputs) {
  return torch::nn::Sequential(torch::nn::Linear(inputs, outputs),
                               nn::LayerNorm(outputs), torch::nn::GELU());
}

// A 1 x 1 convolution is a linear layer, and rows of points have the layout
// that the following norms need.
at::Tensor on_points(const torch::nn::Conv1d& conv, const at::Tensor& rows) {
  return at::linear(rows, conv->weight.squeeze(-1), conv->bias);
}

}  // namespace

PointNet::PointNet(int64_t outputs) {
  conv1_ = register_module("conv1", conv1x1(3, 64));
  conv2_ = register_module("conv2", conv1x1(64, 128));
  conv3_ = register_module("conv3", conv1x1(128, outputs));
  bn1_ = register_module("bn1", SyncBatchNorm(64));
  bn2_ = register_module("bn2", SyncBatchNorm(128));
  bn3_ = register_module("bn3", SyncBatchNorm(outputs));
}

at::Tensor PointNet::forward(const at::Tensor& points) {
  at::Tensor x = bn1_(on_points(conv1_, points.flatten(0, 1))).relu_();
  x = bn2_(on_points(conv2_, x)).relu_();
  x = bn3_(on_points(conv3_, x));
  return x.view({points.size(0), points.size(1), -1}).amax(1);
}

GeometryEncoder::GeometryEncoder(const GeometryConfig& config)
    : config_(config) {
  register_parameter("token_query",
                     torch::randn({1, 1, config.token_size}) * 0.02);
  const int64_t half = config.outputs / 2;
  const int64_t quarter = config.outputs / 4;
  token_pooler_ =
      register_module("token_pooler", make_perceptron(config.token_size, half));
  int64_t width = half;
  if (config.use_pointnet) {
    pointnet_ = register_module("pointnet", std::make_shared<PointNet>(half));
    width += half;
  }
  if (config.use_pose) {
    pose_encoder_ = register_module("pose_encoder",
                                    make_perceptron(kViewPoseSize, quarter));
    width += quarter;
  }
  // As in the original: parts that together have the output width are not
  // projected, for example tokens and points without the pose.
  if (width != config.outputs) {
    final_proj_ =
        register_module("final_proj", nn::Linear(width, config.outputs));
  }
}

at::Tensor GeometryEncoder::forward(const ViewFeatures& views) {
  std::vector<at::Tensor> parts = {token_pooler_->forward(views.tokens)};
  if (config_.use_pointnet) {
    parts.push_back(pointnet_->forward(views.points.flatten(0, 1))
                        .unflatten(0, {views.points.size(0), -1}));
  }
  if (config_.use_pose) parts.push_back(pose_encoder_->forward(views.pose));
  // Some parts leave norms in float32, others in a narrower type.
  at::ScalarType type = parts[0].scalar_type();
  for (const auto& part : parts) {
    type = at::promoteTypes(type, part.scalar_type());
  }
  for (auto& part : parts) part = part.to(type);
  const at::Tensor joined = at::cat(parts, -1);
  return final_proj_.is_empty() ? joined : final_proj_->forward(joined);
}

}  // namespace lockstep::atlas
