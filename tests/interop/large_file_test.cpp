// Checkpoints beyond 4 GiB: sizes and offsets need zip64.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint.h"
#include "lockstep/formats/torch_file.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

TEST(LargeFile, IsReadByBothSides) {
  const testing::TempDir folder;
  const auto path = folder.path() / "large.pt";
  const int64_t size = (int64_t{4} << 30) + 1000;
  {
    // Zeros that nobody wrote to take no memory.
    const at::Tensor large = torch::zeros({size}, at::kByte);
    large[size - 1] = 7;
    Tree tree;
    tree["large"] = large;
    tree["behind"] = torch::tensor({1.0F, 2.0F});
    save_checkpoint(path, tree);
  }
  const formats::Value value = formats::read_torch_file(path);
  const auto& bytes = value.at("large").as_tensor().storage->bytes();
  EXPECT_EQ(bytes.size(), static_cast<size_t>(size));
  EXPECT_EQ(bytes.back(), std::byte{7});
  const auto python = testing::run(
      {TORCH_PYTHON, "-c",
       "import sys, torch\n"
       "loaded = torch.load(sys.argv[1], weights_only=True, mmap=True)\n"
       "print(loaded['large'].numel(), loaded['large'][-1].item(),\n"
       "      loaded['behind'].tolist())\n",
       path.string()},
      {.environment = {}, .folder = "", .ignored_signals = {}});
  EXPECT_EQ(python.out, std::to_string(size) + " 7 [1.0, 2.0]\n") << python.err;
}

}  // namespace
}  // namespace lockstep
