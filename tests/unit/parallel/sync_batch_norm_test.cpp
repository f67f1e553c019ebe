#include "lockstep/sync_batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/environment.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

using torch::Tensor;

World world_of_one() {
  return World::from_environment({}, base::Environment{});
}

double distance(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>();
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SyncBatchNorm, IsAPlainBatchNormUntilItIsConnected) {
  torch::manual_seed(1);
  SyncBatchNorm ours(3);
  torch::nn::BatchNorm2d theirs(3);
  for (int step = 0; step < 3; ++step) {
    const Tensor data = torch::randn({4, 3, 5, 6}) * 2 + 1;
    const Tensor x = data.clone().requires_grad_();
    const Tensor y = data.clone().requires_grad_();
    const Tensor weights = torch::randn_like(data);
    const Tensor ours_out = ours(x);
    const Tensor theirs_out = theirs(y);
    (ours_out * weights).sum().backward();
    (theirs_out * weights).sum().backward();
    EXPECT_LT(distance(ours_out, theirs_out), 1e-6);
    EXPECT_LT(distance(x.grad(), y.grad()), 1e-6);
  }
  EXPECT_LT(distance(ours->weight.grad(), theirs->weight.grad()), 1e-5);
  EXPECT_LT(distance(ours->bias.grad(), theirs->bias.grad()), 1e-5);
  EXPECT_LT(distance(ours->running_mean, theirs->running_mean), 1e-6);
  EXPECT_LT(distance(ours->running_var, theirs->running_var), 1e-6);
  EXPECT_EQ(ours->num_batches_tracked.item<int64_t>(), 3);
  ours->eval();
  theirs->eval();
  const Tensor data = torch::randn({1, 3, 1, 1});
  EXPECT_LT(distance(ours(data), theirs(data)), 1e-6);
  EXPECT_EQ(ours->num_batches_tracked.item<int64_t>(), 3);
}

TEST(SyncBatchNorm, HasTheNamesOfABatchNorm) {
  const SyncBatchNorm ours(3);
  const torch::nn::BatchNorm2d theirs(3);
  EXPECT_EQ(ours->named_parameters().keys(), theirs->named_parameters().keys());
  EXPECT_EQ(ours->named_buffers().keys(), theirs->named_buffers().keys());
  EXPECT_EQ(ours->num_batches_tracked.scalar_type(), at::kLong);
}

TEST(SyncBatchNorm, TakesInputsOfTwoToFiveDimensions) {
  SyncBatchNorm norm(2);
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {4, 2}, {4, 2, 3}, {4, 2, 3, 3}, {4, 2, 3, 3, 3}}) {
    EXPECT_EQ(norm(torch::randn(shape)).sizes(), shape);
  }
  EXPECT_NE(error_of([&] { norm(torch::randn({4})); }).find("1 dimensions"),
            std::string::npos);
  EXPECT_NE(error_of([&] { norm(torch::randn({4, 3})); }).find("3 channels"),
            std::string::npos);
}

TEST(SyncBatchNorm, RefusesOneValuePerChannelInTraining) {
  SyncBatchNorm norm(2);
  EXPECT_NE(error_of([&] {
              norm(torch::randn({1, 2, 1, 1}));
            }).find("raise the batch size"),
            std::string::npos);
  norm->eval();
  EXPECT_EQ(norm(torch::randn({1, 2, 1, 1})).numel(), 2);
}

TEST(SyncBatchNorm, StaysPlainInAWorldOfOne) {
  torch::nn::Sequential net(SyncBatchNorm(2));
  connect_sync_batch_norms(*net, world_of_one());
  EXPECT_FALSE(net[0]->as<SyncBatchNorm>()->is_connected());
}

TEST(SyncBatchNorm, ConversionRefusesABatchNormOfLibtorchByName) {
  const World world = world_of_one();
  const auto refusal = [&](auto norm) {
    const torch::nn::Sequential inner(torch::nn::Conv2d(3, 2, 1), norm);
    torch::nn::ModuleList net(SyncBatchNorm(3), inner);
    return error_of([&] { connect_sync_batch_norms(*net, world); });
  };
  for (const std::string& text :
       {refusal(torch::nn::BatchNorm1d(2)), refusal(torch::nn::BatchNorm2d(2)),
        refusal(torch::nn::BatchNorm3d(2))}) {
    EXPECT_NE(text.find("'1.1'"), std::string::npos) << text;
    EXPECT_NE(text.find("lockstep::SyncBatchNorm"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace lockstep
