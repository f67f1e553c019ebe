// Images are read, resized and cropped as by Pillow.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "lockstep/base/files.h"
#include "lockstep/data/image_ops.h"
#include "lockstep/error.h"
#include "support/images.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

struct Case {
  std::string kind, file, argument;
  int width, height;
  std::string result;

  data::Image theirs() const {
    data::Image image = data::make_image(width, height, 3);
    const std::string bytes = base::read_file(result);
    image.pixels.assign(bytes.begin(), bytes.end());
    return image;
  }
  data::Image ours() const;
};

data::Image Case::ours() const {
  static const std::map<std::string, data::Filter> kFilters = {
      {"nearest", data::Filter::kNearest},
      {"box", data::Filter::kBox},
      {"bilinear", data::Filter::kBilinear},
      {"bicubic", data::Filter::kBicubic}};
  if (kind == "draft") {
    return data::read_image(file, {.at_least_short_side = std::stoi(argument)});
  }
  data::Image image = data::read_image(file);
  if (kind == "resize") {
    return data::resize(image, {width, height}, kFilters.at(argument));
  }
  if (kind == "adm") return data::center_crop_adm(image, std::stoi(argument));
  return image;
}

void write_images(const testing::TempDir& folder) {
  using testing::JpegKind;
  for (const auto& png : testing::png_of_each_kind()) {
    folder.write(png.name + ".png", png.bytes);
  }
  const data::Image original = testing::test_image(233, 171);
  folder.write("ours.png", data::encode_png(original));
  const std::map<std::string, JpegKind> kinds = {
      {"baseline", JpegKind::kBaseline},
      {"progressive", JpegKind::kProgressive},
      {"grey", JpegKind::kGrey},
      {"cmyk", JpegKind::kCmyk},
      {"ycck", JpegKind::kYcck}};
  for (const auto& [name, kind] : kinds) {
    folder.write(name + ".jpg", testing::encode_jpeg(original, kind));
  }
}

std::vector<Case> ask_pillow(const testing::TempDir& folder) {
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/image_reference.py",
                    folder.path().string()});
  EXPECT_EQ(python.exit_code, 0) << python.err;
  std::istringstream lines(python.out);
  std::vector<Case> cases;
  Case next;
  while (lines >> next.kind >> next.file >> next.argument >> next.width >>
         next.height >> next.result) {
    cases.push_back(next);
  }
  return cases;
}

TEST(ImageParity, PixelsAreThoseOfPillow) {
  const testing::TempDir folder;
  write_images(folder);
  std::map<std::string, int> compared;
  for (const Case& c : ask_pillow(folder)) {
    EXPECT_EQ(testing::largest_difference(c.ours(), c.theirs()), 0)
        << c.kind << " " << c.file << " " << c.argument << " " << c.width << "x"
        << c.height;
    ++compared[c.kind];
  }
  const std::map<std::string, int> expected = {
      {"adm", 8}, {"decode", 44}, {"draft", 36}, {"resize", 48}};
  EXPECT_EQ(compared, expected);
}

}  // namespace
}  // namespace lockstep
