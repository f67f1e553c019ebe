#include "lockstep/image_folder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/data/image_ops.h"
#include "lockstep/error.h"
#include "lockstep/loader.h"
#include "support/images.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::test_image;

class ImageFolders : public ::testing::Test {
 protected:
  void add(const std::string& name, const data::Image& image) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    data::write_png(path, image);
  }
  std::string names(const ImageFolder& data) const {
    std::string text;
    for (int64_t i = 0; i < data.size(); ++i) {
      text += data.path(i).lexically_relative(folder_.path()).string() + "=" +
              std::to_string(data.label(i)) + " ";
    }
    return text;
  }
  template <typename Expected>
  std::string error_of(const std::filesystem::path& path) {
    try {
      const ImageFolder data(path);
    } catch (const Expected& error) {
      return error.what();
    }
    ADD_FAILURE() << "not the error that was expected";
    return "";
  }

  testing::TempDir folder_;
};

TEST_F(ImageFolders, SubFoldersAreClassesInTheOrderOfTheirNames) {
  const data::Image image = test_image(8, 8);
  for (const char* name : {"dog/2.PNG", "dog/10.jpg", "dog/deep/1.Jpeg",
                           "cat/b.png", "cat-2/a.png", "Ant/x.png"}) {
    add(name, image);
  }
  folder_.write("dog/notes.txt", "no image");
  folder_.write("stray.png", "not in a class");
  const ImageFolder data(folder_.path());
  EXPECT_EQ(data.classes(),
            (std::vector<std::string>{"Ant", "cat", "cat-2", "dog"}));
  EXPECT_EQ(names(data),
            "Ant/x.png=0 cat/b.png=1 cat-2/a.png=2 dog/10.jpg=3 dog/2.PNG=3 "
            "dog/deep/1.Jpeg=3 ");
}

TEST_F(ImageFolders, AFolderWithoutSubFoldersIsOneClass) {
  add("b.png", test_image(8, 8));
  add("a.png", test_image(8, 8));
  const ImageFolder data(folder_.path());
  EXPECT_EQ(data.classes(),
            (std::vector<std::string>{folder_.path().filename()}));
  EXPECT_EQ(names(data), "a.png=0 b.png=0 ");
}

TEST_F(ImageFolders, ASampleIsTheFittedImageAndItsLabel) {
  const data::Image image = test_image(70, 50);
  add("a/1.png", image);
  add("b/1.png", image);
  const ImageFolder cropped(folder_.path(), {.image_size = 16});
  const Sample sample = cropped.get(1, 7);
  ASSERT_EQ(sample.size(), 2u);
  EXPECT_TRUE(torch::equal(sample[0],
                           data::to_tensor(data::center_crop_adm(image, 16))));
  EXPECT_TRUE(torch::equal(sample[1], torch::tensor(int64_t{1})));
  const ImageFolder stretched(folder_.path(),
                              {.image_size = 16, .fit = Fit::kStretch});
  EXPECT_TRUE(torch::equal(
      stretched.get(0, 7)[0],
      data::to_tensor(data::resize(image, {16, 16}, data::Filter::kBicubic))));
}

TEST_F(ImageFolders, FastDecodingChangesJpegImagesOnlySlightly) {
  const data::Image image = test_image(300, 200);
  std::filesystem::create_directories(folder_.path() / "a");
  folder_.write("a/1.jpg",
                testing::encode_jpeg(image, testing::JpegKind::kBaseline));
  const auto read = [&](bool fast) {
    return ImageFolder(folder_.path(), {.image_size = 32, .fast_decode = fast})
        .get(0, 0)[0]
        .to(torch::kFloat);
  };
  const auto exact = data::to_tensor(data::center_crop_adm(
      data::read_image(folder_.path() / "a" / "1.jpg"), 32));
  EXPECT_TRUE(torch::equal(read(false), exact.to(torch::kFloat)));
  const auto difference = (read(true) - read(false)).abs().mean();
  EXPECT_GT(difference.item<float>(), 0);
  EXPECT_LT(difference.item<float>(), 2);
}

TEST_F(ImageFolders, FlipsFollowTheSeedAlone) {
  const data::Image image = test_image(16, 16);
  add("a/1.png", image);
  const ImageFolder data(folder_.path(),
                         {.image_size = 16, .random_flip = true});
  const auto straight = data::to_tensor(image);
  const auto mirrored = data::to_tensor(data::flip_horizontal(image));
  int num_mirrored = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const at::Tensor sample = data.get(0, seed)[0];
    const bool is_mirrored = torch::equal(sample, mirrored);
    ASSERT_TRUE(is_mirrored || torch::equal(sample, straight));
    ASSERT_TRUE(torch::equal(data.get(0, seed)[0], sample));
    num_mirrored += is_mirrored ? 1 : 0;
  }
  EXPECT_NEAR(num_mirrored, 500, 60);
}

TEST_F(ImageFolders, AFolderThatIsNotOneSaysWhatIsExpected) {
  const auto missing = folder_.path() / "missing";
  EXPECT_NE(error_of<ConfigError>(missing).find(missing.string()),
            std::string::npos);
  EXPECT_NE(error_of<ConfigError>(folder_.path()).find("sub-folder of .jpg"),
            std::string::npos);
  add("a/1.png", test_image(8, 8));
  std::filesystem::create_directories(folder_.path() / "empty");
  EXPECT_NE(error_of<ConfigError>(folder_.path()).find("/empty'"),
            std::string::npos);
  EXPECT_THROW(ImageFolder(folder_.path() / "a", {.image_size = 0}),
               ConfigError);
}

TEST_F(ImageFolders, ABrokenFileIsNamedThroughTheLoader) {
  add("a/1.png", test_image(8, 8));
  const std::string broken = folder_.write("a/2.png", "");
  const Loader loader(std::make_shared<ImageFolder>(folder_.path()), {0, 1},
                      c10::Device(c10::DeviceType::CPU),
                      {.batch_size = 2, .workers = 2, .shuffle = false});
  auto epoch = loader.epoch(0);
  try {
    epoch.next();
    ADD_FAILURE() << "no error";
  } catch (const FormatError& error) {
    EXPECT_EQ(std::string(error.what()), "sample 1 of the data set: image '" +
                                             broken +
                                             "': an image file of 0 bytes");
  }
}

}  // namespace
}  // namespace lockstep
