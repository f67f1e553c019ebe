#include "lockstep/checkpoint/host_copy.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

TEST(HostCopy, CopiesDoNotChangeWithTheirOriginals) {
  const at::Tensor original = torch::zeros({4});
  Tree tree;
  tree["x"] = original;
  const Tree copied =
      checkpoint::host_copy(tree, checkpoint::CpuTensors::kCopy);
  const Tree shared =
      checkpoint::host_copy(tree, checkpoint::CpuTensors::kShare);
  original.fill_(1);
  EXPECT_EQ(copied.at("x").as_tensor().sum().item<float>(), 0);
  EXPECT_EQ(shared.at("x").as_tensor().sum().item<float>(), 4);
}

TEST(HostCopy, TiedTensorsStayTied) {
  const at::Tensor flat = torch::arange(6, at::kFloat);
  Tree tree;
  tree["all"] = flat;
  tree["middle"] = flat.slice(0, 2, 4);
  tree["columns"] = flat.reshape({2, 3}).t();
  const Tree copied =
      checkpoint::host_copy(tree, checkpoint::CpuTensors::kCopy);
  copied.at("all").as_tensor().fill_(9);
  EXPECT_EQ(copied.at("middle").as_tensor().sum().item<float>(), 18);
  EXPECT_EQ(copied.at("columns").as_tensor().sizes(),
            (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(copied.at("columns").as_tensor().sum().item<float>(), 54);
  EXPECT_EQ(flat[1].item<float>(), 1);
}

TEST(HostCopy, PartsOfAStorageAreCopiedAlone) {
  Tree tree;
  tree["part"] = torch::arange(100, at::kFloat).slice(0, 1, 100, 50);
  const Tree copied =
      checkpoint::host_copy(tree, checkpoint::CpuTensors::kShare);
  const at::Tensor& part = copied.at("part").as_tensor();
  EXPECT_EQ(part.storage().nbytes(), 8u);
  EXPECT_EQ(part[1].item<float>(), 51);
}

TEST(HostCopy, LazyConjugatesAreResolved) {
  const at::Tensor number =
      torch::complex(torch::ones({2}), torch::ones({2})).conj();
  ASSERT_TRUE(number.is_conj());
  Tree tree;
  tree["x"] = number;
  const Tree copied =
      checkpoint::host_copy(tree, checkpoint::CpuTensors::kShare);
  EXPECT_FALSE(copied.at("x").as_tensor().is_conj());
  EXPECT_TRUE(torch::equal(copied.at("x").as_tensor(), number.resolve_conj()));
}

}  // namespace
}  // namespace lockstep
