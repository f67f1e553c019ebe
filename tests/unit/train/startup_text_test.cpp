#include "lockstep/train/startup_text.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const c10::Device kCpu(c10::DeviceType::CPU);

TEST(StartupText, ARecipeForGpusSaysThatItTrainsOnTheCpu) {
  const RecipeFacts facts{.name = "jit"};
  EXPECT_EQ(cpu_text(kCpu, {}, facts, {}),
            "No usable GPU: jit trains on the CPU, which is much slower; "
            "--device cpu says that this is meant");
  EXPECT_NE(cpu_text(kCpu, {}, facts, {{"CUDA_VISIBLE_DEVICES", "0"}}), "");
}

TEST(StartupText, WhoeverMeansTheCpuIsNotTold) {
  const RecipeFacts facts{.name = "jit"};
  const TrainConfig on_cpu{.device = "cpu"};
  EXPECT_EQ(cpu_text(kCpu, on_cpu, facts, {}), "");
  EXPECT_EQ(cpu_text(kCpu, {}, facts, {{"CUDA_VISIBLE_DEVICES", ""}}), "");
  const RecipeFacts small{.name = "tiny", .suits_cpus = true};
  EXPECT_EQ(cpu_text(kCpu, {}, small, {}), "");
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  EXPECT_EQ(cpu_text(gpu, {}, facts, {}), "");
}

}  // namespace
}  // namespace lockstep
