#include "lockstep/base/gpu_setting.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(GpuSetting, EmptyAndMinusOneMeanCpus) {
  for (const char* setting : {"", " ", "-1", "NoDevFiles"}) {
    EXPECT_TRUE(base::means_cpus(setting)) << setting;
    EXPECT_FALSE(base::misses_gpus(setting, 2)) << setting;
  }
  for (const char* setting : {"0", "7", "-1,0", "GPU-8a"}) {
    EXPECT_FALSE(base::means_cpus(setting)) << setting;
    EXPECT_TRUE(base::misses_gpus(setting, 2)) << setting;
    EXPECT_FALSE(base::misses_gpus(setting, 0)) << setting;
  }
  EXPECT_TRUE(base::misses_gpus(std::nullopt, 2));
}

TEST(GpuSetting, TheTextNamesVariableAndGpus) {
  EXPECT_EQ(base::none_visible_text(std::nullopt, 0), "no GPU is visible");
  EXPECT_EQ(base::none_visible_text("4", 0),
            "no GPU is visible: this machine has none "
            "(CUDA_VISIBLE_DEVICES=4)");
  EXPECT_EQ(base::none_visible_text("4,5", 1),
            "no GPU is visible: CUDA_VISIBLE_DEVICES=4,5 shows none, and this "
            "machine has 1 GPU (0)");
  EXPECT_EQ(base::none_visible_text(std::nullopt, 8),
            "no GPU is visible although this machine has 8 GPUs (0 to 7); "
            "check that nvidia-smi works");
}

}  // namespace
}  // namespace lockstep
