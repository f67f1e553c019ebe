#include "lockstep/cli/startup_text.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const c10::Device kCpu(c10::DeviceType::CPU);

TEST(StartupText, ARecipeForGpusSaysThatItTrainsOnTheCpu) {
  EXPECT_EQ(cli::cpu_text(kCpu, "auto", "jit", {}),
            "No usable GPU: jit trains on the CPU, which is much slower; "
            "--device cpu silences this warning");
  EXPECT_NE(cli::cpu_text(kCpu, "auto", "jit", {{"CUDA_VISIBLE_DEVICES", "0"}}),
            "");
}

TEST(StartupText, WhoeverMeansTheCpuIsNotTold) {
  EXPECT_EQ(cli::cpu_text(kCpu, "cpu", "jit", {}), "");
  EXPECT_EQ(cli::cpu_text(kCpu, "auto", "jit", {{"CUDA_VISIBLE_DEVICES", ""}}),
            "");
  EXPECT_EQ(cli::cpu_text(kCpu, "auto", "tiny", {}), "");
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  EXPECT_EQ(cli::cpu_text(gpu, "auto", "jit", {}), "");
}

}  // namespace
}  // namespace lockstep
