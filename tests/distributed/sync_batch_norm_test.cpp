// Statistics over ranks are those of one process with the joined batch.
#include "lockstep/sync_batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/ddp.h"
#include "lockstep/error.h"
#include "support/norm_comparison.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::run_ranks;
using torch::Tensor;

using testing::compare_norms;
using testing::expect_near;
using testing::joined;

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
    connect_sync_batch_norms(*norm, world);
    EXPECT_THROW(norm(torch::randn({world.rank(), 2})), ConfigError);
    // One on each is enough.
    const Tensor out = norm(torch::randn({1, 2}));
    EXPECT_TRUE(torch::isfinite(out).all().item<bool>());
  });
}

TEST(SyncBatchNormRanks, EvaluationNeedsNoOtherRank) {
  run_ranks({.size = 2}, [](const World& world) {
    SyncBatchNorm norm(2);
    connect_sync_batch_norms(*norm, world);
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
    connect_sync_batch_norms(*norm, world);
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
    connect_sync_batch_norms(*net, world);
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
