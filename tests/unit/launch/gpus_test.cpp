#include "lockstep/launch/gpus.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

Names visible(const std::string& setting, int installed = 4) {
  return launch::find_visible_gpus({{"CUDA_VISIBLE_DEVICES", setting}},
                                   [installed] { return installed; })
      .names;
}

TEST(VisibleGpus, WithoutSettingAllInstalledOnes) {
  const launch::VisibleGpus gpus =
      launch::find_visible_gpus({}, [] { return 2; });
  EXPECT_EQ(gpus.names, (Names{"0", "1"}));
  EXPECT_FALSE(gpus.setting);
}

TEST(VisibleGpus, TheSettingSelectsByIndexOrIdentifier) {
  EXPECT_EQ(visible("2,0"), (Names{"2", "0"}));
  EXPECT_EQ(visible(" 1 , 3"), (Names{"1", "3"}));
  EXPECT_EQ(visible("GPU-aa,MIG-bb"), (Names{"GPU-aa", "MIG-bb"}));
}

TEST(VisibleGpus, TheListEndsAtTheFirstInvalidEntry) {
  EXPECT_EQ(visible("0,7,1"), Names{"0"});
  EXPECT_EQ(visible("0,-1,1"), Names{"0"});
  EXPECT_EQ(visible("no"), Names{});
}

TEST(VisibleGpus, EmptyAndMinusOneMeanNone) {
  EXPECT_EQ(visible(""), Names{});
  EXPECT_EQ(visible("-1"), Names{});
}

TEST(VisibleGpus, ARepeatedGpuHidesAll) { EXPECT_EQ(visible("0,0"), Names{}); }

TEST(VisibleGpus, HiddenOnesAreCounted) {
  const auto installed = [](const std::string& setting) {
    return launch::find_visible_gpus({{"CUDA_VISIBLE_DEVICES", setting}},
                                     [] { return 4; })
        .installed;
  };
  for (const char* setting : {"", "-1", "7", "2,0"}) {
    EXPECT_EQ(installed(setting), 4) << setting;
  }
}

TEST(VisibleGpus, AnUnknownIdentifierEndsTheList) {
  const auto names = [](const std::string& setting) {
    return launch::find_visible_gpus(
               {{"CUDA_VISIBLE_DEVICES", setting}}, [] { return 4; },
               [](const std::string& name) { return name == "GPU-aa"; })
        .names;
  };
  EXPECT_EQ(names("GPU-aa,GPU-bb"), Names{"GPU-aa"});
  EXPECT_EQ(names("GPU-bb"), Names{});
}

TEST(VisibleGpus, TheSettingInventsNoGpu) {
  EXPECT_EQ(visible("0", 0), Names{});
  EXPECT_EQ(visible("GPU-aa", 0), Names{});
}

}  // namespace
}  // namespace lockstep
