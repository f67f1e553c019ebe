#include "lockstep/data/skip_bad_samples.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/data/image_ops.h"
#include "lockstep/error.h"
#include "lockstep/image_folder.h"
#include "lockstep/loader.h"
#include "support/images.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::encode_jpeg;
using testing::JpegKind;
using testing::test_image;

// Sample i is i, with its seed; some cannot be read.
class Numbers final : public Dataset {
 public:
  Numbers(int64_t size, std::function<bool(int64_t)> is_bad)
      : size_(size), is_bad_(std::move(is_bad)) {}
  int64_t size() const override { return size_; }
  Sample get(int64_t index, uint64_t seed) const override {
    if (is_bad_(index)) {
      if (index % 2 == 0) throw IoError("gone");
      throw FormatError("damaged");
    }
    return {torch::tensor({index, static_cast<int64_t>(seed)})};
  }

 private:
  int64_t size_;
  std::function<bool(int64_t)> is_bad_;
};

data::SkipBadSamples numbers(int64_t size,
                             std::function<bool(int64_t)> is_bad) {
  return data::SkipBadSamples(
      std::make_shared<Numbers>(size, std::move(is_bad)));
}

int64_t number_of(const data::SkipBadSamples& data, int64_t index) {
  const at::Tensor sample = data.get(index, 7)[0];
  EXPECT_EQ(sample[1].item<int64_t>(), 7);
  return sample[0].item<int64_t>();
}

TEST(SkipBadSamples, TheNextThatCanBeReadTakesThePlace) {
  const auto data =
      numbers(10, [](int64_t i) { return i == 3 || i == 4 || i == 9; });
  EXPECT_EQ(data.size(), 10);
  EXPECT_EQ(number_of(data, 2), 2);
  EXPECT_EQ(data.bad().count, 0);
  EXPECT_EQ(number_of(data, 4), 5);
  EXPECT_EQ(number_of(data, 3), 5);
  EXPECT_EQ(number_of(data, 9), 0);
  EXPECT_EQ(number_of(data, 3), 5);
  EXPECT_EQ(data.bad().count, 3);
  EXPECT_EQ(data.bad().messages,
            (std::vector<std::string>{"gone", "damaged", "damaged"}));
}

TEST(SkipBadSamples, KeepsManyMessagesAndCountsAll) {
  const auto data = numbers(30'000, [](int64_t i) { return i % 2 == 0; });
  for (int64_t i = 0; i < data.size(); ++i) data.get(i, 7);
  EXPECT_EQ(data.bad().count, 15'000);
  EXPECT_EQ(data.bad().messages.size(), 10'000U);
}

TEST(SkipBadSamples, ABrokenDataSetIsAnError) {
  constexpr int64_t kMost = data::SkipBadSamples::kMaxInARow;
  const auto almost = numbers(200, [](int64_t i) { return i < kMost - 1; });
  EXPECT_EQ(number_of(almost, 0), kMost - 1);
  const auto broken = numbers(200, [](int64_t i) { return i < kMost; });
  EXPECT_EQ(number_of(broken, 1), kMost);
  try {
    number_of(broken, 0);
    ADD_FAILURE() << "no error";
  } catch (const FormatError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("64 samples one after the other cannot be read, from "
                        "sample 0 on"),
              0U)
        << text;
    EXPECT_NE(text.find("damaged"), std::string::npos) << text;
  }
  EXPECT_THROW(number_of(numbers(3, [](int64_t) { return true; }), 1),
               FormatError);
}

TEST(SkipBadSamples, OtherErrorsPass) {
  const auto data = numbers(3, [](int64_t i) -> bool {
    if (i == 1) throw ConfigError("no such class");
    return false;
  });
  EXPECT_THROW(number_of(data, 1), ConfigError);
}

TEST(SkipBadSamples, GivesTheSameOnAnyNumberOfThreads) {
  const auto whole = std::make_shared<Numbers>(
      500, [](int64_t i) { return i % 3 == 0 || i % 7 == 0; });
  std::vector<at::Tensor> first;
  for (const int workers : {1, 4}) {
    const auto data = std::make_shared<data::SkipBadSamples>(whole);
    const Loader loader(data, {0, 1}, c10::Device(c10::DeviceType::CPU),
                        {.batch_size = 25, .workers = workers});
    std::vector<at::Tensor> batches;
    auto epoch = loader.epoch(3);
    while (const auto batch = epoch.next()) {
      batches.push_back(batch->tensors[0]);
    }
    ASSERT_EQ(batches.size(), 20U);
    EXPECT_EQ(data->bad().count, 500 - 285);
    if (first.empty()) first = batches;
    EXPECT_TRUE(torch::equal(torch::cat(batches), torch::cat(first)));
  }
}

TEST(SkipBadSamples, DamagedImagesOfAFolderAreSkipped) {
  const testing::TempDir folder;
  const data::Image image = test_image(40, 30);
  const std::string jpeg = encode_jpeg(image, JpegKind::kBaseline);
  std::string garbled = jpeg;
  std::fill(garbled.begin() + 2, garbled.end(), '\x55');
  folder.write("1-garbled.jpg", garbled);
  folder.write("2-half-a-header.jpg", jpeg.substr(0, 100));
  folder.write("3-empty.jpg", "");
  folder.write("4-text.png", "not an image file");
  folder.write("5-grey.jpg", encode_jpeg(image, JpegKind::kGrey));
  folder.write("6-cmyk.jpg", encode_jpeg(image, JpegKind::kCmyk));
  std::filesystem::create_symlink("7-loop.jpg", folder.path() / "7-loop.jpg");
  const data::SkipBadSamples data(std::make_shared<ImageFolder>(
      folder.path(), ImageFolderConfig{.image_size = 16}));
  std::vector<Sample> samples;
  for (int64_t i = 0; i < data.size(); ++i) samples.push_back(data.get(i, i));
  ASSERT_EQ(samples.size(), 7U);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(torch::equal(samples[i][0], samples[4][0]));
  }
  EXPECT_FALSE(torch::equal(samples[5][0], samples[4][0]));
  const data::BadSamples bad = data.bad();
  EXPECT_EQ(bad.count, 5);
  EXPECT_NE(bad.messages.at(4).find("7-loop.jpg': "), std::string::npos)
      << bad.messages.at(4);
  EXPECT_NE(bad.messages.at(2).find("3-empty.jpg': an image file of 0 bytes"),
            std::string::npos)
      << bad.messages.at(2);
}

}  // namespace
}  // namespace lockstep
