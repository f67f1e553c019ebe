// A run that is cut in two gives the bits of one that is not, when the bucket
// layout comes along. From world 3 on the layout decides the order of the sums.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/ddp.h"
#include "lockstep/error.h"
#include "lockstep/fingerprint.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

struct Mlp : torch::nn::Module {
  torch::nn::Linear a{32, 300}, b{300, 300}, c{300, 300}, d{300, 5};
  Mlp() {
    register_module("a", a);
    register_module("b", b);
    register_module("c", c);
    register_module("d", d);
  }
  torch::Tensor forward(torch::Tensor x) {
    return d(torch::tanh(c(torch::tanh(b(torch::tanh(a(x)))))));
  }
};

struct Run {
  std::shared_ptr<Mlp> net;
  BucketLayout layout;
};

Run train(const World& world, std::shared_ptr<Mlp> net, int from, int to,
          std::optional<BucketLayout> layout) {
  DistributedDataParallel<Mlp> ddp(
      net, world, {.bucket_cap_mb = 0.5, .bucket_layout = std::move(layout)});
  // Without momentum the parameters are the whole state.
  torch::optim::SGD optimizer(net->parameters(), 0.05);
  for (int step = from; step < to; ++step) {
    auto generator = at::detail::createCPUGenerator(1000 * world.rank() + step);
    ddp(torch::randn({8, 32}, generator)).square().mean().backward();
    optimizer.step();
    net->zero_grad();
  }
  return {net, ddp.bucket_layout()};
}

std::shared_ptr<Mlp> fresh_net() {
  torch::manual_seed(3);
  return std::make_shared<Mlp>();
}

class DdpResume : public ::testing::TestWithParam<int> {};

TEST_P(DdpResume, GivesTheSameBitsWithTheOldLayout) {
  testing::run_ranks({.size = GetParam()}, [](const World& world) {
    for (const int cut : {1, 2, 10}) {
      const auto whole = train(world, fresh_net(), 0, 20, {});
      const auto first = train(world, fresh_net(), 0, cut, {});
      EXPECT_GT(first.layout.size(), 1u);
      const auto second = train(world, first.net, cut, 20, first.layout);
      EXPECT_EQ(fingerprint(second.net->parameters()),
                fingerprint(whole.net->parameters()))
          << "cut at step " << cut;
      EXPECT_EQ(second.layout, whole.layout);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, DdpResume, ::testing::Values(1, 2, 3, 4));

TEST(DdpResumeLayout, MattersFromThreeRanksOn) {
  // If this fails, the layout no longer needs to be kept: the test above proves
  // nothing.
  testing::run_ranks({.size = 3}, [](const World& world) {
    const auto whole = train(world, fresh_net(), 0, 20, {});
    const auto first = train(world, fresh_net(), 0, 10, {});
    const auto second = train(world, first.net, 10, 20, {});
    EXPECT_NE(fingerprint(second.net->parameters()),
              fingerprint(whole.net->parameters()));
  });
}

}  // namespace
}  // namespace lockstep
