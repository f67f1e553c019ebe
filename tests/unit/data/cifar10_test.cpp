#include "lockstep/datasets/images/cifar10.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/data/dataset_views.h"
#include "lockstep/error.h"
#include "lockstep/random.h"
#include "support/cifar10_files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::cifar10_binary;
using testing::cifar10_pixels;
using testing::cifar10_python;

void expect_images(const Dataset& data, int64_t count) {
  ASSERT_EQ(data.size(), count);
  for (int64_t i = 0; i < count; ++i) {
    const Sample sample = data.get(i, 0);
    ASSERT_EQ(sample[0].sizes(), (std::vector<int64_t>{3, 32, 32}));
    EXPECT_EQ(sample[0].scalar_type(), at::kByte);
    const std::string bytes(
        static_cast<const char*>(sample[0].contiguous().const_data_ptr()),
        3072);
    EXPECT_EQ(bytes, cifar10_pixels(i)) << i;
    EXPECT_EQ(sample[1].item<int64_t>(), i % 10);
  }
}

TEST(Cifar10, ReadsTheBinaryLayout) {
  const testing::TempDir folder;
  folder.write("data_batch_1.bin", cifar10_binary(0, 13));
  folder.write("data_batch_2.bin", cifar10_binary(13, 20));
  folder.write("test_batch.bin", cifar10_binary(0, 4));
  folder.write("batches.meta.txt", "airplane\n");
  const auto files = images::find_cifar10(folder.path());
  ASSERT_TRUE(files);
  expect_images(*images::read_cifar10(files->train), 20);
  expect_images(*images::read_cifar10(files->test), 4);
}

TEST(Cifar10, ReadsThePicklesOfPython2) {
  const testing::TempDir folder;
  std::filesystem::create_directory(folder.path() / "cifar-10-batches-py");
  folder.write("cifar-10-batches-py/data_batch_1", cifar10_python(0, 7));
  folder.write("cifar-10-batches-py/data_batch_2", cifar10_python(7, 12));
  folder.write("cifar-10-batches-py/test_batch", cifar10_python(0, 3));
  const auto files = images::find_cifar10(folder.path());
  ASSERT_TRUE(files);
  expect_images(*images::read_cifar10(files->train), 12);
  expect_images(*images::read_cifar10(files->test), 3);
}

TEST(Cifar10, ReadsPicklesWhoseKeysAreBytes) {
  const testing::TempDir folder;
  const std::string path =
      folder.write("data_batch_1", testing::cifar10_python_with_bytes(0, 7));
  expect_images(*images::read_cifar10({path}), 7);
}

TEST(Cifar10, SaysWhichPartOfAPickleIsMissing) {
  const testing::TempDir folder;
  const std::string path = folder.write("data_batch_1", "\x80\x02}.");
  try {
    images::read_cifar10({path});
    ADD_FAILURE() << "it was read";
  } catch (const FormatError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("its dict has no 'data'"), std::string::npos) << text;
    EXPECT_EQ(text.find("checkpoint"), std::string::npos) << text;
  }
}

TEST(Cifar10, IsNotFoundWhereNoBatchesAre) {
  const testing::TempDir folder;
  EXPECT_FALSE(images::find_cifar10(folder.path()));
  EXPECT_FALSE(images::find_cifar10(folder.path() / "absent"));
  folder.write("data_batch_1.txt", "");
  EXPECT_FALSE(images::find_cifar10(folder.path()));
}

TEST(Cifar10, NamesTheFileThatIsDamaged) {
  const testing::TempDir folder;
  const std::vector<std::pair<std::string, std::string>> damaged = {
      {"data_batch_1.bin", cifar10_binary(0, 2).substr(1)},
      {"data_batch_2.bin", ""},
      {"data_batch_3.bin", "\x0a" + cifar10_pixels(0)},
      {"data_batch_4", cifar10_python(0, 2).substr(0, 900)},
      {"data_batch_5", "\x80\x02}."},
  };
  for (const auto& [name, bytes] : damaged) {
    const std::string path = folder.write(name, bytes);
    try {
      images::read_cifar10({path});
      ADD_FAILURE() << name << " was read";
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos)
          << error.what();
    } catch (const IoError&) {
      EXPECT_TRUE(bytes.empty()) << name;
    }
  }
}

TEST(RandomFlip, MirrorsHalfOfTheSamplesByTheirSeeds) {
  const auto row = at::arange(8, at::kByte).view({1, 1, 8});
  const auto inner = std::make_shared<TensorDataset>(
      std::vector{row.unsqueeze(0), at::zeros({1}, at::kLong)});
  const data::RandomFlip flip(inner);
  int mirrored = 0;
  for (int64_t epoch = 0; epoch < 1000; ++epoch) {
    const uint64_t seed = sample_seed(3, epoch, 0);
    const auto image = flip.get(0, seed)[0];
    EXPECT_TRUE(at::equal(image, flip.get(0, seed)[0]));
    if (at::equal(image, row)) continue;
    EXPECT_TRUE(at::equal(image, row.flip(-1)));
    ++mirrored;
  }
  EXPECT_NEAR(mirrored, 500, 60);
}

}  // namespace
}  // namespace lockstep
