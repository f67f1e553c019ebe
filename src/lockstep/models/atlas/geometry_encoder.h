// Encodes VGGT's tokens, point cloud and camera pose of a view as one vector.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>
#include <memory>

#include "lockstep/nn/linear.h"
#include "lockstep/sync_batch_norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::atlas {

// Features of B observations with S views of P points.
struct ViewFeatures {
  at::Tensor tokens = {};  // [B, S, token size]: the mean of a view's tokens.
  at::Tensor pose = {};    // [B, S, 9]
  at::Tensor points = {};  // [B, S, P, 3]
};

// At least 4 outputs: tokens and points are encoded to outputs / 2 numbers
// each, the pose to outputs / 4.
struct GeometryConfig {
  int64_t token_size = 2048;
  int64_t outputs = 512;
  bool use_pointnet = true;
  bool use_pose = true;
};

// PointNet: three layers per point, then the maximum over a cloud. Parameters
// are those of 1 x 1 convolutions.
class PointNet : public torch::nn::Module {
 public:
  explicit PointNet(int64_t outputs);

  // [clouds, P, 3] -> [clouds, outputs]
  at::Tensor forward(const at::Tensor& points);

 private:
  torch::nn::Conv1d conv1_{nullptr};
  torch::nn::Conv1d conv2_{nullptr};
  torch::nn::Conv1d conv3_{nullptr};
  SyncBatchNorm bn1_{nullptr};
  SyncBatchNorm bn2_{nullptr};
  SyncBatchNorm bn3_{nullptr};
};

// The original's parameter token_query is registered but not used.
class GeometryEncoder : public torch::nn::Module {
 public:
  explicit GeometryEncoder(const GeometryConfig& config);

  // [B, S, outputs]
  at::Tensor forward(const ViewFeatures& views);

 private:
  GeometryConfig config_;
  torch::nn::Sequential token_pooler_{nullptr};
  std::shared_ptr<PointNet> pointnet_;
  torch::nn::Sequential pose_encoder_{nullptr};
  nn::Linear final_proj_{nullptr};  // Empty if the widths are equal.
};

}  // namespace lockstep::atlas
