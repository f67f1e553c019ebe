// One process and one GPU: device, fingerprint, loader.
#include "lockstep/tensor/device.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/ddp.h"
#include "lockstep/fingerprint.h"
#include "lockstep/loader.h"
#include "lockstep/world.h"

namespace lockstep {
namespace {

World gpu_world() {
  return World::from_environment({.device = DeviceChoice::kCuda}, {});
}

TEST(Gpu, IsTakenWhenThereIsOne) {
  const World world = World::from_environment({}, {});
  EXPECT_TRUE(world.device().is_cuda());
  EXPECT_EQ(tensor::device_identity(world.device()).size(), 32u);
  EXPECT_GE(tensor::num_usable_gpus(), 1);
}

TEST(Gpu, AProcessThatSeesOneGpuUsesItWhateverItsLocalRank) {
  if (tensor::num_usable_gpus() != 1) return;
  EXPECT_EQ(tensor::take_device(DeviceChoice::kAuto, 5, {}).index(), 0);
}

TEST(Gpu, FingerprintsEqualThoseOfTheCpu) {
  const World world = gpu_world();
  std::vector<at::Tensor> tensors = {
      torch::randn({3, 1000003}),
      torch::randn({7}).to(torch::kHalf),
      torch::randint(256, {1001}, torch::kByte),
      torch::randn({64, 64}).t(),
      torch::empty({0}),
      torch::randint(256, {999}, torch::kByte).slice(0, 3)};
  std::vector<at::Tensor> copies;
  for (const auto& tensor : tensors) {
    copies.push_back(tensor.to(world.device()));
  }
  // A view that starts at an odd byte.
  copies.push_back(copies[2].slice(0, 1));
  tensors.push_back(tensors[2].slice(0, 1));
  EXPECT_EQ(fingerprint(copies), fingerprint(tensors));
  copies[0][2][1000002] += 1;
  EXPECT_NE(fingerprint(copies), fingerprint(tensors));
}

TEST(Gpu, TheLoaderBringsEveryBatchToTheDevice) {
  const World world = gpu_world();
  const auto data = std::make_shared<TensorDataset>(std::vector<at::Tensor>{
      torch::arange(100000).view({1000, 100}), torch::arange(1000)});
  const Loader loader(data, world, {.batch_size = 30, .workers = 3});
  int64_t seen = 0;
  auto epoch = loader.epoch(1);
  for (const Batch& batch : epoch) {
    ASSERT_TRUE(batch[0].is_cuda());
    const auto expected = torch::tensor(batch.indices);
    EXPECT_TRUE(torch::equal(batch[1].cpu(), expected));
    EXPECT_TRUE(torch::equal(batch[0].select(1, 0).cpu(), expected * 100));
    seen += batch.size();
  }
  EXPECT_EQ(seen, 1000);
}

TEST(Gpu, DdpAloneGivesTheGradientsOfTheBareModule) {
  const World world = gpu_world();
  torch::manual_seed(1);
  auto bare = std::make_shared<torch::nn::LinearImpl>(64, 32);
  bare->to(world.device());
  auto wrapped =
      std::dynamic_pointer_cast<torch::nn::LinearImpl>(bare->clone());
  DistributedDataParallel<torch::nn::LinearImpl> ddp(wrapped, world);
  for (int step = 0; step < 3; ++step) {
    const auto x = torch::randn({16, 64}, world.device());
    bare->forward(x).square().sum().backward();
    ddp(x).square().sum().backward();
    EXPECT_TRUE(torch::equal(bare->weight.grad(), wrapped->weight.grad()));
    bare->zero_grad();
    wrapped->zero_grad();
  }
}

}  // namespace
}  // namespace lockstep
