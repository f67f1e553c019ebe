#include "lockstep/tensor/cuda_driver.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(CudaDriver, AnOldDriverIsNamedWithTheVersionNeeded) {
  const std::string text = tensor::driver_too_old_message(
      {.num_devices = 2, .version = 12040, .problem = ""}, 13000);
  EXPECT_NE(text.find("supports CUDA 12.4"), std::string::npos) << text;
  EXPECT_NE(text.find("needs CUDA 13.0"), std::string::npos) << text;
  EXPECT_NE(text.find("driver 580 or newer"), std::string::npos) << text;
}

TEST(CudaDriver, OneOfTheSameMajorVersionWillDo) {
  EXPECT_EQ(tensor::driver_too_old_message(
                {.num_devices = 1, .version = 13000, .problem = ""}, 13000),
            "");
  EXPECT_EQ(tensor::driver_too_old_message(
                {.num_devices = 1, .version = 13000, .problem = ""}, 13020),
            "");
}

}  // namespace
}  // namespace lockstep
