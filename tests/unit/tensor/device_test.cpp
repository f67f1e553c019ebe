#include "lockstep/tensor/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "lockstep/error.h"
#include "lockstep/tensor/cuda_driver.h"
#include "lockstep/tensor/cuda_library.h"

namespace lockstep {
namespace {

TEST(Device, TheCpuCanAlwaysBeChosen) {
  EXPECT_TRUE(tensor::take_device(DeviceChoice::kCpu, 5, {}).is_cpu());
}

TEST(Device, AGpuThatIsNotThereIsAnError) {
  if (tensor::cuda_driver().num_devices > 0)
    return;  // There is one: gpu tests look at it.
  EXPECT_EQ(tensor::num_usable_gpus(), 0);
  EXPECT_TRUE(tensor::take_device(DeviceChoice::kAuto, 0, {}).is_cpu());
  try {
    tensor::take_device(DeviceChoice::kCuda, 0, {});
    ADD_FAILURE() << "no error";
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("cannot use a GPU: no GPU is visible"))
        << text;
    EXPECT_NE(text.find("; --device cpu "), std::string::npos) << text;
  }
}

TEST(Device, AGpuThatIsHiddenIsAnErrorWithTheVariable) {
  if (tensor::cuda_driver().num_devices > 0) return;
  const char* before = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::optional<std::string> kept =
      before == nullptr ? std::nullopt : std::optional<std::string>(before);
  setenv("CUDA_VISIBLE_DEVICES", "4,5", 1);
  std::string text;
  try {
    tensor::take_device(DeviceChoice::kCuda, 0, {});
  } catch (const DeviceError& error) {
    text = error.what();
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
  if (kept) setenv("CUDA_VISIBLE_DEVICES", kept->c_str(), 1);
  EXPECT_NE(text.find("CUDA_VISIBLE_DEVICES=4,5"), std::string::npos) << text;
}

TEST(Device, MemoryOfThisProcessIsKnown) {
  EXPECT_GT(tensor::host_memory_in_use(), 1 << 20);
  EXPECT_EQ(tensor::device_memory_in_use(c10::Device(c10::DeviceType::CPU)), 0);
}

}  // namespace
}  // namespace lockstep
