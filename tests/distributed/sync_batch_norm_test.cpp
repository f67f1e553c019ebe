// Statistics over ranks are those of one process with the joined batch.
#include "lockstep/parallel/sync_batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::run_ranks;
using torch::Tensor;

struct Comparison {
  at::ScalarType dtype = at::kFloat;
  double tolerance = 1e-5;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
  std::vector<int64_t> batches;  // per rank
};

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

void set_random(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : module.parameters()) parameter.normal_(1, 0.5);
}

void compare_norms(const World& world, const Comparison& with) {
  torch::manual_seed(3);
  int64_t total = 0;
  for (const int64_t batch : with.batches) total += batch;
  const Tensor data = (torch::randn({total, 6, 3, 5}, with.dtype) *
                           torch::tensor({0.1, 1., 3., 1., 1., 2.}, with.dtype)
                               .view({1, 6, 1, 1}) +
                       2)
                          .contiguous(with.format);
  const Tensor weights = torch::randn({total, 6, 3, 5}, with.dtype);
  SyncBatchNorm alone(6);
  set_random(*alone);
  alone->to(with.dtype);
  SyncBatchNorm ours(
      std::dynamic_pointer_cast<SyncBatchNormImpl>(alone->clone()));
  convert_sync_batchnorm(*ours, world);
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

TEST(SyncBatchNormRanks, TwoRanksEqualTheJoinedBatch) {
  run_ranks({.size = 2}, [](const World& world) {
    compare_norms(world, {.batches = {3, 5}});
    compare_norms(
        world, {.format = at::MemoryFormat::ChannelsLast, .batches = {2, 2}});
    compare_norms(
        world, {.dtype = at::kDouble, .tolerance = 1e-10, .batches = {4, 1}});
  });
}

TEST(SyncBatchNormRanks, ThreeRanksEqualTheJoinedBatchAlsoWithEmptyOnes) {
  run_ranks({.size = 3}, [](const World& world) {
    compare_norms(world, {.batches = {1, 4, 2}});
    compare_norms(world, {.batches = {0, 3, 2}});
    compare_norms(
        world,
        {.dtype = at::kDouble, .tolerance = 1e-10, .batches = {4, 0, 0}});
  });
}

TEST(SyncBatchNormRanks, OneValuePerChannelOverallIsAnErrorOnEveryRank) {
  run_ranks({.size = 2}, [](const World& world) {
    SyncBatchNorm norm(2);
    convert_sync_batchnorm(*norm, world);
    EXPECT_THROW(norm(torch::randn({world.rank(), 2})), ConfigError);
    // One on each is enough.
    const Tensor out = norm(torch::randn({1, 2}));
    EXPECT_TRUE(torch::isfinite(out).all().item<bool>());
  });
}

TEST(SyncBatchNormRanks, EvaluationNeedsNoOtherRank) {
  run_ranks({.size = 2}, [](const World& world) {
    SyncBatchNorm norm(2);
    convert_sync_batchnorm(*norm, world);
    norm->eval();
    const Tensor x = torch::randn({1, 2, 3, 3});
    if (!world.is_main()) return;
    EXPECT_LT((norm(x) - x).abs().max().item<double>(), 1e-4);
  });
}

TEST(SyncBatchNormRanks, NormalisesHalfPrecision) {
  run_ranks({.size = 2}, [](const World& world) {
    torch::manual_seed(world.rank());
    SyncBatchNorm norm(4);
    convert_sync_batchnorm(*norm, world);
    const Tensor x = torch::randn({8, 4, 6, 6}).to(at::kBFloat16);
    const Tensor input = x.clone().requires_grad_();
    const Tensor out = norm(input);
    EXPECT_EQ(out.scalar_type(), at::kBFloat16);
    EXPECT_LT(joined(world, out.detach().to(at::kFloat).mean({0, 2, 3}))
                  .abs()
                  .max()
                  .item<double>(),
              0.01);
    out.square().sum().backward();
    EXPECT_EQ(input.grad().scalar_type(), at::kBFloat16);
    EXPECT_EQ(norm->weight.grad().scalar_type(), at::kFloat);
  });
}

struct SmallNetImpl : torch::nn::Module {
  torch::nn::Conv2d first{torch::nn::Conv2dOptions(3, 8, 3).bias(false)};
  SyncBatchNorm norm1{8};
  torch::nn::Conv2d second{torch::nn::Conv2dOptions(8, 8, 3).bias(false)};
  SyncBatchNorm norm2{8};
  torch::nn::Linear head{8, 4};
  SmallNetImpl() {
    register_module("first", first);
    register_module("norm1", norm1);
    register_module("second", second);
    register_module("norm2", norm2);
    register_module("head", head);
  }
  Tensor forward(const Tensor& x) {
    const Tensor h = norm1(first(x)).relu_();
    return head(norm2(second(h)).relu_().mean({2, 3}));
  }
};

TEST(SyncBatchNormRanks, ANetTrainsAlikeOnOneAndOnTwoRanks) {
  run_ranks({.size = 2}, [](const World& world) {
    at::set_num_threads(1);
    torch::manual_seed(7);
    const auto alone = std::make_shared<SmallNetImpl>();
    torch::manual_seed(7);
    const auto net = std::make_shared<SmallNetImpl>();
    convert_sync_batchnorm(*net, world);
    DistributedDataParallel<SmallNetImpl> ddp(net, world);
    torch::optim::SGD alone_sgd(alone->parameters(), 0.1);
    torch::optim::SGD sgd(net->parameters(), 0.1);
    for (int step = 0; step < 6; ++step) {
      const Tensor x = torch::randn({8, 3, 9, 9});
      const Tensor labels = torch::randint(4, {8});
      const Tensor expected =
          torch::nn::functional::cross_entropy(alone->forward(x), labels);
      expected.backward();
      const int64_t begin = 4 * world.rank();
      Tensor loss = torch::nn::functional::cross_entropy(
          ddp(x.slice(0, begin, begin + 4)), labels.slice(0, begin, begin + 4));
      loss.backward();
      Tensor mean = loss.detach().clone();
      world.all_reduce(mean, ReduceOp::kMean);
      EXPECT_NEAR(mean.item<double>(), expected.item<double>(), 1e-5);
      alone_sgd.step();
      sgd.step();
      alone->zero_grad();
      net->zero_grad();
    }
    for (const auto& item : alone->named_parameters()) {
      expect_near(net->named_parameters()[item.key()].detach(),
                  item.value().detach(), 1e-4);
    }
    for (const auto& name : {"norm1.running_mean", "norm2.running_var"}) {
      expect_near(net->named_buffers()[name], alone->named_buffers()[name],
                  1e-4);
    }
  });
}

}  // namespace
}  // namespace lockstep
