// SyncBatchNorm: batch normalisation over the batches of all ranks.
//
//   struct Net : torch::nn::Module {
//     lockstep::SyncBatchNorm norm{64};
//     ...
//   };
//   connect_sync_batch_norms(*net, world);  // before DDP wraps it
//
// Members of C++ modules are typed, so plain BatchNorms cannot be converted as
// in Python: use lockstep::SyncBatchNorm from the start. Until it is connected
// it behaves as a plain BatchNorm.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "lockstep/export.h"
#include "lockstep/world.h"

namespace lockstep {

struct BatchNormConfig {
  double eps = 1e-5;
  double momentum = 0.1;
};

// Parameters, buffers and their meaning are those of torch.nn.BatchNorm:
// weight, bias, running_mean, running_var (unbiased), num_batches_tracked.
class LOCKSTEP_EXPORT SyncBatchNormImpl
    : public torch::nn::Cloneable<SyncBatchNormImpl> {
 public:
  explicit SyncBatchNormImpl(int64_t num_features,
                             const BatchNormConfig& config = {});
  void reset() override;

  // x [N, C, ...] of 2 to 5 dimensions. Connected and in training it is a
  // collective, forward and backward; ranks may have batches of any size, also
  // none. Gradients of weight and bias are those of this rank's batch, for DDP
  // to average. Throws ConfigError, on all ranks, when all batches together
  // have less than two values per channel.
  at::Tensor forward(const at::Tensor& x);

  // From now on statistics are computed over all ranks of the world.
  void connect(const World& world);
  bool is_connected() const { return world_.has_value(); }

  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
  at::Tensor num_batches_tracked;

 private:
  void check_shape(const at::Tensor& x) const;

  int64_t num_features_;
  BatchNormConfig config_;
  std::optional<World> world_;
};
TORCH_MODULE(SyncBatchNorm);

// Connects every SyncBatchNorm of the tree; in a world of one they stay plain.
// Throws ConfigError for a BatchNorm of libtorch in the tree, by its name.
LOCKSTEP_EXPORT void connect_sync_batch_norms(torch::nn::Module& root,
                                              const World& world);

}  // namespace lockstep
