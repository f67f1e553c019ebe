#include "lockstep/formats/image_grid.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/formats/base64.h"

namespace lockstep {
namespace {

// Two rows of three images of 2 x 1 pixels with a border of 1; image i has the
// level 10 * i + 10.
std::string grid_png(const formats::PngText& text, int channels = 3) {
  constexpr int kWidth = 3 * 4;
  constexpr int kHeight = 2 * 3;
  std::vector<uint8_t> pixels;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const bool is_border = x % 4 == 0 || x % 4 == 3 || y % 3 != 1;
      const int level = is_border ? 255 : 10 * (y / 3 * 3 + x / 4) + 10;
      pixels.insert(pixels.end(), size_t(channels), uint8_t(level));
    }
  }
  return formats::encode_png({.width = kWidth,
                              .height = kHeight,
                              .channels = channels,
                              .pixels = pixels,
                              .text = text});
}

formats::ImageGrid two_by_three() {
  return {.rows = 2,
          .columns = 3,
          .border = 1,
          .labels = {"circle", "\xe5\x9c\x86\xe5\xbd\xa2"}};
}

TEST(ImageGrid, ImagesAndLabelsComeBack) {
  for (const int channels : {1, 3}) {
    const auto read = formats::read_image_grid(
        grid_png(formats::grid_text(two_by_three()), channels));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->grid.labels, two_by_three().labels);
    ASSERT_EQ(read->images.size(), 6U);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(read->images[i].width, 2);
      EXPECT_EQ(read->images[i].height, 1);
      EXPECT_EQ(read->images[i].pixels,
                std::vector<uint8_t>(6, uint8_t(10 * i + 10)));
    }
  }
}

TEST(ImageGrid, AnyOtherImageIsNone) {
  EXPECT_FALSE(formats::read_image_grid(grid_png({})));
  EXPECT_FALSE(formats::read_image_grid(grid_png({"Comment", "a cat"})));
}

TEST(ImageGrid, AMissingLabelIsEmpty) {
  formats::ImageGrid grid = two_by_three();
  grid.labels = {"one"};
  const auto read =
      formats::read_image_grid(grid_png(formats::grid_text(grid)));
  EXPECT_EQ(read->grid.labels, (std::vector<std::string>{"one", ""}));
}

TEST(ImageGrid, ADescriptionThatDoesNotFitIsAnError) {
  const std::string keyword = formats::grid_text({}).keyword;
  for (const char* text :
       {"", "[", "[]", "{}", "{\"rows\":2,\"columns\":3}",
        "{\"rows\":5,\"columns\":3,\"border\":1}",
        "{\"rows\":2,\"columns\":3,\"border\":2}",
        "{\"rows\":2,\"columns\":3,\"border\":-1}",
        "{\"rows\":2,\"columns\":1e9,\"border\":0}",
        "{\"rows\":2,\"columns\":99999999999,\"border\":0}"}) {
    const std::string png = grid_png({keyword, text});
    if (std::string_view(text).empty()) {
      EXPECT_FALSE(formats::read_image_grid(png));
    } else {
      EXPECT_THROW(formats::read_image_grid(png), FormatError) << text;
    }
  }
  EXPECT_THROW(formats::read_image_grid("no png"), FormatError);
}

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(formats::to_base64(""), "");
  EXPECT_EQ(formats::to_base64("f"), "Zg==");
  EXPECT_EQ(formats::to_base64("fo"), "Zm8=");
  EXPECT_EQ(formats::to_base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace lockstep
