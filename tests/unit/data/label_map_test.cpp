#include "lockstep/data/label_map.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/images.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

data::Image all_numbers() {
  data::Image labels = data::make_image(32, 8, 1);
  for (size_t i = 0; i < labels.pixels.size(); ++i) {
    labels.pixels[i] = static_cast<uint8_t>(i);
  }
  return labels;
}

data::Image with_three_channels(const data::Image& grey) {
  data::Image rgb = data::make_image(grey.width, grey.height, 3);
  for (size_t i = 0; i < rgb.pixels.size(); ++i) {
    rgb.pixels[i] = grey.pixels[i / 3];
  }
  return rgb;
}

std::string refusal(std::string_view bytes) {
  try {
    data::decode_label_map(bytes);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

TEST(LabelMap, PaletteGivesItsNumbersAndNotItsColours) {
  const data::Image labels = all_numbers();
  const std::string bytes =
      data::encode_palette_png(labels, data::voc_palette());
  EXPECT_EQ(data::decode_label_map(bytes).pixels, labels.pixels);
  const data::Image colours = data::decode_image(bytes);
  const std::vector<uint8_t> palette = data::voc_palette();
  EXPECT_EQ(colours.pixels, palette);
}

TEST(LabelMap, ColoursAreThoseOfVoc) {
  const std::vector<uint8_t> palette = data::voc_palette();
  const auto colour = [&palette](size_t label) {
    return std::vector<int>(palette.begin() + static_cast<long>(3 * label),
                            palette.begin() + static_cast<long>(3 * label + 3));
  };
  EXPECT_EQ(colour(0), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(colour(1), (std::vector<int>{128, 0, 0}));        // aeroplane
  EXPECT_EQ(colour(15), (std::vector<int>{192, 128, 128}));   // person
  EXPECT_EQ(colour(20), (std::vector<int>{0, 64, 128}));      // tv monitor
  EXPECT_EQ(colour(255), (std::vector<int>{224, 224, 192}));  // none
}

TEST(LabelMap, GreyAndEqualChannelsGiveTheirLevels) {
  const data::Image labels = all_numbers();
  EXPECT_EQ(data::decode_label_map(data::encode_png(labels)).pixels,
            labels.pixels);
  const data::Image rgb = with_three_channels(labels);
  EXPECT_EQ(data::decode_label_map(data::encode_png(rgb)).pixels,
            labels.pixels);
}

TEST(LabelMap, AllOtherFilesAreRefused) {
  for (const auto& png : testing::png_of_each_kind()) {
    const bool is_palette = png.name.starts_with("palette");
    const bool is_grey8 = png.name.starts_with("grey-8");
    if (is_palette || is_grey8) {
      EXPECT_EQ(refusal(png.bytes), "") << png.name;
    } else {
      EXPECT_NE(refusal(png.bytes), "") << png.name;
    }
  }
  const data::Image image = testing::test_image(20, 10);
  EXPECT_NE(refusal(testing::encode_jpeg(image, testing::JpegKind::kGrey)), "");
  const std::string whole = data::encode_png(all_numbers());
  EXPECT_NE(refusal(std::string_view(whole).substr(0, whole.size() / 2)), "");
  EXPECT_NE(refusal(""), "");
}

TEST(LabelMap, RefusalNamesFileAndWhatIsExpected) {
  const testing::TempDir folder;
  const std::string path =
      folder.write("x.png", data::encode_png(testing::test_image(20, 10)));
  try {
    data::read_label_map(path);
    FAIL() << "no FormatError";
  } catch (const FormatError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_NE(text.find("palette"), std::string::npos) << text;
  }
}

TEST(LabelMap, LabelsBeyondThePaletteAreRefused) {
  const std::vector<uint8_t> two_colours = {0, 0, 0, 255, 255, 255};
  EXPECT_THROW(data::encode_palette_png(all_numbers(), two_colours),
               ConfigError);
  EXPECT_THROW(
      data::encode_palette_png(testing::test_image(4, 4), data::voc_palette()),
      ConfigError);
}

}  // namespace
}  // namespace lockstep
