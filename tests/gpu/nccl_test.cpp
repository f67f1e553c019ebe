// NCCL with several ranks that share one GPU.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/comm/vote.h"
#include "lockstep/ddp.h"
#include "lockstep/fingerprint.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using torch::Tensor;

struct ThreeLayerNet : torch::nn::Module {
  torch::nn::Linear a{32, 512}, b{512, 512}, c{512, 10};
  ThreeLayerNet() {
    register_module("a", a);
    register_module("b", b);
    register_module("c", c);
  }
  Tensor forward(Tensor x) { return c(torch::tanh(b(torch::tanh(a(x))))); }
};

constexpr int kSteps = 20;

std::shared_ptr<ThreeLayerNet> make_net() {
  torch::manual_seed(5);
  return std::make_shared<ThreeLayerNet>();
}

Tensor data_of(int rank, int step) {
  auto generator = at::detail::createCPUGenerator(1000 * rank + step);
  return torch::randn({16, 32}, generator);
}

// What the ranks should reach, computed by one process on the CPU.
std::vector<Tensor> reference(int world_size) {
  auto net = make_net();
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < kSteps; ++step) {
    Tensor loss = torch::zeros({});
    for (int rank = 0; rank < world_size; ++rank) {
      loss = loss + net->forward(data_of(rank, step)).square().mean();
    }
    (loss / world_size).backward();
    optimizer.step();
    net->zero_grad();
  }
  return net->parameters();
}

void expect_equal_on_all_ranks(const World& world, const ThreeLayerNet& net) {
  const auto own = std::to_string(fingerprint(net.parameters()));
  for (const auto& other : world.gather_texts(own)) EXPECT_EQ(other, own);
}

double train_and_compare(const World& world, const DdpConfig& config) {
  auto net = make_net();
  net->to(world.device());
  DistributedDataParallel<ThreeLayerNet> ddp(net, world, config);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < kSteps; ++step) {
    ddp(data_of(world.rank(), step)).square().mean().backward();
    optimizer.step();
    net->zero_grad();
  }
  expect_equal_on_all_ranks(world, *net);
  double worst = 0;
  const auto expected = reference(world.size());
  const auto got = net->parameters();
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst,
                     (got[i].cpu() - expected[i]).abs().max().item<double>());
  }
  return worst;
}

class Nccl : public ::testing::TestWithParam<int> {
 protected:
  testing::RankOptions options() const {
    return {.size = GetParam(),
            .launcher_options = {"--share-gpus"},
            .device = DeviceChoice::kCuda};
  }
};

TEST_P(Nccl, RanksEndEqualAndNearTheCpu) {
  const auto output = testing::run_ranks(options(), [](const World& world) {
    EXPECT_TRUE(world.device().is_cuda());
    const double plain = train_and_compare(world, {.bucket_cap_mb = 1});
    EXPECT_LT(plain, 1e-5);
    const double bf16 =
        train_and_compare(world, {.compression = Compression::kBf16});
    EXPECT_LT(bf16, 1e-2);
    const double unused =
        train_and_compare(world, {.find_unused_parameters = true});
    EXPECT_LT(unused, 1e-5);
    if (world.is_main()) {
      std::printf(
          "%d ranks, largest difference to the CPU: %.3g, with the "
          "bf16 hook %.3g\n",
          world.size(), plain, bf16);
    }
  });
  const auto begin =
      output.find(std::to_string(GetParam()) + " ranks, largest");
  ASSERT_NE(begin, std::string::npos) << output;
  std::puts(output.substr(begin, output.find('\n', begin) - begin).c_str());
}

TEST_P(Nccl, CollectivesWorkOnBothDevices) {
  testing::run_ranks(options(), [](const World& world) {
    const int n = world.size();
    for (const auto device : {world.device(), c10::Device("cpu")}) {
      auto tensor = torch::full({1000}, world.rank() + 1.0, device);
      world.all_reduce(tensor);
      EXPECT_EQ(tensor[999].item<double>(), n * (n + 1) / 2);
      auto sent = torch::full({3}, world.rank(), device);
      world.broadcast(sent, n - 1);
      EXPECT_EQ(sent[2].item<int>(), n - 1);
      EXPECT_EQ(world.all_gather(torch::full({2}, world.rank(), device))[n - 1]
                    .sum()
                    .item<int>(),
                2 * (n - 1));
    }
    auto vote = world.make_vote();
    vote.post(world.rank());
    EXPECT_EQ(vote.read(), n - 1);
    world.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Nccl, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace lockstep
