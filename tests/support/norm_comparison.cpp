#include "support/norm_comparison.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/sync_batch_norm.h"

namespace lockstep::testing {

using torch::Tensor;

// Relative to the size of what is expected.
void expect_near(const Tensor& ours, const Tensor& expected, double tolerance) {
  ASSERT_EQ(ours.sizes(), expected.sizes());
  ASSERT_EQ(ours.scalar_type(), expected.scalar_type());
  if (ours.numel() == 0) return;
  const double size = expected.norm().item<double>();
  EXPECT_LE((ours - expected).norm().item<double>(), tolerance * size);
}

Tensor joined(const World& world, const Tensor& own) {
  Tensor sum = own.clone();
  world.all_reduce(sum);
  return sum;
}

namespace {

void set_random(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : module.parameters()) parameter.normal_(1, 0.5);
}

}  // namespace

void compare_norms(const World& world, const NormComparison& with) {
  torch::manual_seed(3);
  int64_t total = 0;
  for (const int64_t batch : with.batches) total += batch;
  const Tensor data = (torch::randn({total, 6, 3, 5}, with.dtype) *
                           torch::tensor({0.1, 1., 3., 1., 1., 2.}, with.dtype)
                               .view({1, 6, 1, 1}) +
                       2)
                          .contiguous(with.format)
                          .to(world.device());
  const Tensor weights =
      torch::randn({total, 6, 3, 5}, with.dtype).to(world.device());
  SyncBatchNorm alone(6);
  set_random(*alone);
  alone->to(world.device(), with.dtype);
  SyncBatchNorm ours(
      std::dynamic_pointer_cast<SyncBatchNormImpl>(alone->clone()));
  connect_sync_batch_norms(*ours, world);
  ASSERT_TRUE(ours->is_connected());

  const Tensor whole = data.clone().requires_grad_();
  const auto parts = [&](const Tensor& all) {
    return all.split_with_sizes(
        with.batches)[static_cast<size_t>(world.rank())];
  };
  const Tensor part = parts(data).clone().requires_grad_();
  for (int step = 0; step < 2; ++step) {
    const Tensor expected = alone(whole);
    (expected * weights).sum().backward();
    const Tensor out = ours(part);
    EXPECT_EQ(out.suggest_memory_format(), part.suggest_memory_format());
    (out * parts(weights)).sum().backward();
    expect_near(out.detach(), parts(expected.detach()), with.tolerance);
  }
  expect_near(part.grad(), parts(whole.grad()), with.tolerance);
  expect_near(joined(world, ours->weight.grad()), alone->weight.grad(),
              with.tolerance);
  expect_near(joined(world, ours->bias.grad()), alone->bias.grad(),
              with.tolerance);
  expect_near(ours->running_mean, alone->running_mean, with.tolerance);
  expect_near(ours->running_var, alone->running_var, with.tolerance);
  EXPECT_EQ(ours->num_batches_tracked.item<int64_t>(), 2);
}

}  // namespace lockstep::testing
