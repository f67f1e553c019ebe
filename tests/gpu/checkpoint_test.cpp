// Checkpoints of tensors on a GPU.
#include "lockstep/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint/host_copy.h"
#include "lockstep/tensor/device.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

Tree tree_on_gpu() {
  const auto device = tensor::take_device(DeviceChoice::kCuda, 0, {});
  const at::Tensor weight = torch::arange(1 << 24, at::kFloat).to(device);
  Tree tree;
  tree["weight"] = weight;
  tree["tied"] = weight.view({4096, 4096}).t();
  tree["part"] = torch::arange(1000, at::kLong).to(device).slice(0, 3, 5);
  tree["cpu"] = torch::ones({3});
  return tree;
}

void expect_content(const Tree& tree) {
  EXPECT_TRUE(torch::equal(tree.at("weight").as_tensor(),
                           torch::arange(1 << 24, at::kFloat)));
  EXPECT_TRUE(
      torch::equal(tree.at("tied").as_tensor(),
                   torch::arange(1 << 24, at::kFloat).view({4096, 4096}).t()));
  EXPECT_EQ(tree.at("tied").as_tensor().data_ptr(),
            tree.at("weight").as_tensor().data_ptr());
  EXPECT_EQ(tree.at("part").as_tensor()[1].item<int64_t>(), 4);
  EXPECT_EQ(tree.at("cpu").as_tensor().sum().item<float>(), 3);
}

TEST(GpuCheckpoint, HostCopiesArePinnedAndComplete) {
  const Tree copied =
      checkpoint::host_copy(tree_on_gpu(), checkpoint::CpuTensors::kCopy);
  EXPECT_TRUE(copied.at("weight").as_tensor().is_cpu());
  EXPECT_TRUE(copied.at("weight").as_tensor().is_pinned());
  expect_content(copied);
}

TEST(GpuCheckpoint, TensorsMayChangeAsSoonAsSaveReturns) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.pt";
  const Tree tree = tree_on_gpu();
  BackgroundSaver saver;
  saver.save(path, tree);
  tree.at("weight").as_tensor().zero_();
  tree.at("part").as_tensor().zero_();
  saver.wait();
  EXPECT_EQ(saver.take_error(), std::nullopt);
  expect_content(load_checkpoint(path));
}

}  // namespace
}  // namespace lockstep
