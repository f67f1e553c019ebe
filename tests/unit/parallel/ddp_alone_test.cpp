// DistributedDataParallel in a world of one, and what it refuses.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/ddp.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

using torch::nn::LinearImpl;

World alone() {
  return World::from_environment({.device = DeviceChoice::kCpu}, {});
}

std::shared_ptr<LinearImpl> make_linear() {
  torch::manual_seed(1);
  return std::make_shared<LinearImpl>(4, 3);
}

TEST(DdpAlone, GivesTheGradientsOfTheBareModule) {
  const auto bare = make_linear();
  const auto wrapped = make_linear();
  DistributedDataParallel<LinearImpl> ddp(wrapped, alone());
  for (int step = 0; step < 3; ++step) {
    const auto x = torch::randn({5, 4});
    bare->forward(x).square().sum().backward();
    ddp(x).square().sum().backward();
    EXPECT_TRUE(torch::equal(bare->weight.grad(), wrapped->weight.grad()));
    bare->zero_grad();
    wrapped->zero_grad();
  }
}

TEST(DdpAlone, WorksWithAModuleHolder) {
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::ReLU(),
                            torch::nn::Linear(8, 2));
  DistributedDataParallel ddp(net, alone());
  ddp(torch::ones({3, 4})).sum().backward();
  EXPECT_TRUE(net->parameters()[0].grad().defined());
}

TEST(DdpAlone, AccumulatesInsideNoSync) {
  const auto net = make_linear();
  DistributedDataParallel<LinearImpl> ddp(net, alone());
  const auto x = torch::ones({1, 4});
  {
    const auto quiet = ddp.no_sync();
    ddp(x).sum().backward();
  }
  ddp(x).sum().backward();
  EXPECT_TRUE(torch::equal(net->weight.grad(), torch::full({3, 4}, 2.0)));
}

TEST(DdpAlone, EvaluatesWithoutGradients) {
  const auto net = make_linear();
  DistributedDataParallel<LinearImpl> ddp(net, alone());
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(ddp(torch::ones({1, 4})),
                           net->forward(torch::ones({1, 4}))));
}

TEST(DdpAlone, RefusesNoSyncWithAStaticGraph) {
  DistributedDataParallel<LinearImpl> ddp(make_linear(), alone(),
                                          {.static_graph = true});
  EXPECT_THROW(const auto quiet = ddp.no_sync(), ConfigError);
}

TEST(DdpAlone, BackwardAfterItsEndIsAnError) {
  at::Tensor output;
  {
    DistributedDataParallel<LinearImpl> ddp(make_linear(), alone(),
                                            {.static_graph = true});
    output = ddp(torch::ones({1, 4}));
  }
  EXPECT_THROW(output.sum().backward(), ConfigError);
  EXPECT_THROW(DistributedDataParallel<LinearImpl>(
                   std::shared_ptr<LinearImpl>(), alone()),
               ConfigError);
}

TEST(DdpAlone, RefusesAModuleWithoutGradients) {
  const auto net = make_linear();
  for (auto& parameter : net->parameters()) parameter.requires_grad_(false);
  EXPECT_THROW(DistributedDataParallel<LinearImpl>(net, alone()), ConfigError);
}

TEST(DdpAlone, NamesAnIgnoredParameterThatIsNotThere) {
  try {
    DistributedDataParallel<LinearImpl>(make_linear(), alone(),
                                        {.ignored = {"weigth"}});
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "the module has no parameter or buffer 'weigth' to ignore; "
                 "did you mean 'weight'?");
  }
}

TEST(DdpAlone, RefusesASettingThatMakesNoSense) {
  EXPECT_THROW(DistributedDataParallel<LinearImpl>(make_linear(), alone(),
                                                   {.bucket_cap_mb = 0.0}),
               ConfigError);
  EXPECT_THROW(DistributedDataParallel<LinearImpl>(
                   make_linear(), alone(),
                   {.compression = Compression::kFp16,
                    .gradient_hook =
                        [](c10d::GradBucket&) { return GradientFuture(); }}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
