#include "lockstep/tensor/device.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/tensor/cuda_driver.h"
#include "lockstep/tensor/cuda_library.h"

namespace lockstep {
namespace {

TEST(Device, TheCpuCanAlwaysBeChosen) {
  EXPECT_TRUE(take_device(DeviceChoice::kCpu, 5, {}).is_cpu());
}

TEST(Device, AGpuThatIsNotThereIsAnError) {
  if (cuda_driver().num_devices > 0)
    return;  // There is one: gpu tests look at it.
  EXPECT_EQ(num_usable_gpus(), 0);
  EXPECT_TRUE(take_device(DeviceChoice::kAuto, 0, {}).is_cpu());
  try {
    take_device(DeviceChoice::kCuda, 0, {});
    ADD_FAILURE() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "cannot use a GPU: no GPU is visible");
  }
}

TEST(Device, MemoryOfThisProcessIsKnown) {
  EXPECT_GT(host_memory_in_use(), 1 << 20);
  EXPECT_EQ(device_memory_in_use(c10::Device(c10::DeviceType::CPU)), 0);
}

}  // namespace
}  // namespace lockstep
