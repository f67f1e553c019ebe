#include "lockstep/ddp.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "lockstep/error.h"
#include "lockstep/fingerprint.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::run_ranks;
using torch::Tensor;

struct Pair {
  Tensor first;
  Tensor second;
};

template <typename Visit>
void visit_tensors(Pair& pair, Visit&& visit) {
  visit_output(pair.first, visit);
  visit_output(pair.second, visit);
}

struct TwoHeads : torch::nn::Module {
  torch::nn::Linear body{4, 8}, left{8, 2}, right{8, 2};
  TwoHeads() {
    register_module("body", body);
    register_module("left", left);
    register_module("right", right);
  }
  Tensor forward(const Tensor& x) { return left(torch::tanh(body(x))); }
  // Another signature, with an output of its own type.
  Pair forward(const Tensor& x, double scale) {
    const Tensor h = torch::tanh(body(x)) * scale;
    return {left(h), right(h)};
  }
  Tensor only_right(const Tensor& x) { return right(torch::tanh(body(x))); }
};

Tensor data_of(const World& world, int step) {
  auto generator = at::detail::createCPUGenerator(100 * step + world.rank());
  return torch::randn({16, 4}, generator);
}

void expect_equal_on_all_ranks(const World& world,
                               const torch::nn::Module& module) {
  const auto own = std::to_string(fingerprint(module.parameters()));
  for (const std::string& other : world.gather_texts(own)) {
    EXPECT_EQ(other, own);
  }
}

// All ranks start from different weights: DDP gives them rank 0's.
std::shared_ptr<TwoHeads> make_net(const World& world) {
  torch::manual_seed(world.rank());
  return std::make_shared<TwoHeads>();
}

TEST(Ddp, RanksStartAndStayEqual) {
  run_ranks({.size = 3}, [](const World& world) {
    const auto net = make_net(world);
    DistributedDataParallel<TwoHeads> ddp(net, world);
    expect_equal_on_all_ranks(world, *net);
    torch::optim::AdamW optimizer(net->parameters());
    for (int step = 0; step < 5; ++step) {
      const Pair out = ddp(data_of(world, step), 2.0);
      (out.first.square().mean() + out.second.square().mean()).backward();
      optimizer.step();
      net->zero_grad();
    }
    expect_equal_on_all_ranks(world, *net);
  });
}

TEST(Ddp, AveragesTheGradientsOfAllRanks) {
  run_ranks({.size = 2}, [](const World& world) {
    torch::manual_seed(1);
    auto net = std::make_shared<torch::nn::LinearImpl>(
        torch::nn::LinearOptions(4, 1).bias(false));
    DistributedDataParallel<torch::nn::LinearImpl> ddp(net, world);
    ddp(torch::full({1, 4}, world.rank() + 1.0)).sum().backward();
    EXPECT_TRUE(torch::equal(net->weight.grad(), torch::full({1, 4}, 1.5)));
  });
}

TEST(Ddp, TrainsThroughAnyMethodOfTheModule) {
  run_ranks({.size = 2}, [](const World& world) {
    const auto net = make_net(world);
    DistributedDataParallel<TwoHeads> ddp(net, world,
                                          {.find_unused_parameters = true});
    for (int step = 0; step < 3; ++step) {
      const Tensor x = data_of(world, step);
      ddp.run([&](TwoHeads& module) { return module.only_right(x); })
          .sum()
          .backward();
      EXPECT_FALSE(net->left->weight.grad().defined());
      net->zero_grad();
    }
  });
}

TEST(Ddp, NamesParametersThatTookNoPart) {
  run_ranks({.size = 2}, [](const World& world) {
    const auto net = make_net(world);
    DistributedDataParallel<TwoHeads> ddp(net, world);
    ddp(data_of(world, 0)).sum().backward();
    try {
      ddp(data_of(world, 1));
      ADD_FAILURE() << "no error";
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("right.weight, right.bias"), std::string::npos)
          << text;
      EXPECT_NE(text.find("find_unused_parameters"), std::string::npos);
      EXPECT_NE(text.find("has_unused_parameters of TaskInfo"),
                std::string::npos);
    }
  });
}

// As when the capture of a CUDA graph fails within backward.
TEST(Ddp, GoesOnAfterAStepThatWasAbandoned) {
  run_ranks({.size = 2}, [](const World& world) {
    const auto net = make_net(world);
    DistributedDataParallel<TwoHeads> ddp(net, world);
    const auto gradient = [&] {
      net->zero_grad();
      const Pair out = ddp(data_of(world, 0), 2.0);
      (out.first.square().mean() + out.second.square().mean()).backward();
      return net->body->weight.grad().clone();
    };
    const Tensor before = gradient();
    net->zero_grad();
    ddp(data_of(world, 1)).sum().backward();  // Without one of the heads.
    ddp.abandon_step();
    EXPECT_TRUE(torch::equal(gradient(), before));
  });
}

TEST(Ddp, RefusesAnotherModuleOnAnotherRank) {
  run_ranks({.size = 2}, [](const World& world) {
    auto net = torch::nn::Linear(4, world.rank() == 0 ? 2 : 3);
    try {
      DistributedDataParallel<torch::nn::LinearImpl> ddp(net.ptr(), world);
      ADD_FAILURE() << "no error";
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()),
                "rank 1 has a different module or DdpConfig than rank 0: "
                "'parameter weight [3, 4] float trained' there and 'parameter "
                "weight [2, 4] float trained' on rank 0. Build the same module "
                "with the same settings on every rank");
    }
  });
}

TEST(Ddp, RefusesOtherFrozenParametersBuffersAndSettings) {
  run_ranks({.size = 2}, [](const World& world) {
    const int64_t own = world.rank() == 0 ? 4 : 8;
    const auto refuses = [&](const std::shared_ptr<TwoHeads>& net,
                             const DdpConfig& config) {
      EXPECT_THROW(DistributedDataParallel<TwoHeads>(net, world, config),
                   ConfigError);
    };
    auto frozen = make_net(world);
    frozen->register_parameter("frozen", torch::ones({own}), false);
    refuses(frozen, {});
    auto buffered = make_net(world);
    buffered->register_buffer("buffer", torch::ones({own}));
    refuses(buffered, {});
    refuses(make_net(world), {.find_unused_parameters = world.rank() == 0});
  });
}

TEST(Ddp, LeavesIgnoredAndFrozenParametersAlone) {
  run_ranks({.size = 2}, [](const World& world) {
    const auto net = make_net(world);
    const Tensor own_left = net->left->weight.detach().clone();
    net->body->weight.requires_grad_(false);
    DistributedDataParallel<TwoHeads> ddp(
        net, world, {.ignored = {"left.weight", "left.bias"}});
    // Frozen ones are rank 0's, ignored ones stay each rank's own.
    const auto bodies = world.all_gather(net->body->weight.detach());
    EXPECT_TRUE(torch::equal(bodies[0], bodies[1]));
    EXPECT_TRUE(torch::equal(net->left->weight, own_left));
    const Pair out = ddp(data_of(world, 0), 1.0);
    (out.first.sum() + out.second.sum()).backward();
    EXPECT_FALSE(net->body->weight.grad().defined());
    const auto grads = world.all_gather(net->left->weight.grad());
    EXPECT_FALSE(torch::equal(grads[0], grads[1]));
    const auto reduced = world.all_gather(net->right->weight.grad());
    EXPECT_TRUE(torch::equal(reduced[0], reduced[1]));
  });
}

TEST(Ddp, RunsAnOwnGradientHook) {
  run_ranks({.size = 2}, [](const World& world) {
    torch::manual_seed(1);
    auto net = std::make_shared<torch::nn::LinearImpl>(
        torch::nn::LinearOptions(4, 1).bias(false));
    // Takes the sum instead of the mean.
    DistributedDataParallel<torch::nn::LinearImpl> ddp(
        net, world,
        {.gradient_hook = [group = world.group()](c10d::GradBucket& bucket) {
          std::vector<Tensor> tensors{bucket.getBuffer()};
          return group->allreduce(tensors)->getFuture();
        }});
    ddp(torch::full({1, 4}, world.rank() + 1.0)).sum().backward();
    EXPECT_TRUE(torch::equal(net->weight.grad(), torch::full({1, 4}, 3.0)));
  });
}

TEST(Ddp, EarlyEndOfARankCanBeAnErrorOnAll) {
  run_ranks({.size = 2}, [](const World& world) {
    const auto net = make_net(world);
    DistributedDataParallel<TwoHeads> ddp(net, world,
                                          {.find_unused_parameters = true});
    EXPECT_THROW(ddp.join(
                     [&] {
                       for (int step = 0; step < 2 + world.rank(); ++step) {
                         ddp(data_of(world, step)).sum().backward();
                       }
                     },
                     {.throw_on_early_end = true}),
                 ConfigError);
  });
}

TEST(Ddp, SharedAndSparseParametersTrain) {
  run_ranks({.size = 2}, [](const World& world) {
    struct Tied : torch::nn::Module {
      torch::nn::Embedding table{
          torch::nn::EmbeddingOptions(10, 4).sparse(true)};
      torch::nn::Linear first{4, 4};
      Tied() {
        register_module("table", table);
        register_module("first", first);
        register_module("again", first);
      }
      Tensor forward(const Tensor& words) {
        return first(torch::tanh(first(table(words))));
      }
    };
    torch::manual_seed(0);
    const auto net = std::make_shared<Tied>();
    DistributedDataParallel<Tied> ddp(net, world);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      ddp(torch::tensor({world.rank(), 3 + step})).sum().backward();
      EXPECT_TRUE(net->table->weight.grad().is_sparse());
      for (Tensor parameter : {net->first->weight, net->first->bias}) {
        parameter.data().add_(parameter.grad(), -0.1);
      }
      net->zero_grad();
    }
    expect_equal_on_all_ranks(world, *net->first);
  });
}

}  // namespace
}  // namespace lockstep
