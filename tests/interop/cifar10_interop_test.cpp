// Batches of CIFAR-10 are those of Python; the other side is
// python/cifar10_batches.py.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/images/cifar10.h"
#include "support/cifar10_files.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

TEST(Cifar10Interop, PythonReadsOurBatchesAndWeReadThoseOfItsProtocols) {
  constexpr int64_t kCount = 7;
  const testing::TempDir folder;
  const std::string batch =
      folder.write("batch", testing::cifar10_python(0, kCount));
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/cifar10_batches.py", batch,
                    std::to_string(kCount), folder.path().string()});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  const auto files = images::find_cifar10(folder.path());
  ASSERT_TRUE(files);
  ASSERT_EQ(files->train.size(), 3U);
  const auto data = images::read_cifar10(files->train);
  ASSERT_EQ(data->size(), 3 * kCount);
  for (int64_t i = 0; i < data->size(); ++i) {
    const Sample sample = data->get(i, 0);
    const std::string pixels(
        static_cast<const char*>(sample[0].const_data_ptr()), 3072);
    EXPECT_EQ(pixels, testing::cifar10_pixels(i % kCount)) << i;
    EXPECT_EQ(sample[1].item<int64_t>(), i % kCount);
  }
}

}  // namespace
}  // namespace lockstep
