// Images and maps of scribble segmentation are made as by OpenCV, Pillow and
// scipy.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/label_map.h"
#include "lockstep/data/opencv_ops.h"
#include "lockstep/datasets/voc/augment.h"
#include "lockstep/datasets/voc/distance_map.h"
#include "support/images.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

constexpr int kAugmentedSide = 129;

struct Case {
  std::string kind, file, argument_text;
  int width, height;
  std::string result;

  bool is_photo() const { return file.find("photo") != std::string::npos; }
  double argument(size_t which) const {
    return base::parse_number(base::split(argument_text, ',').at(which))
        .value();
  }
  data::Image theirs() const {
    const std::string bytes = base::read_file(result);
    data::Image image = data::make_image(
        width, height, is_photo() || kind == "colours" ? 3 : 1);
    image.pixels.assign(bytes.begin(), bytes.end());
    return image;
  }
  data::Image ours() const;
};

data::ImageSize size_of(const data::Image& image) {
  return {image.width, image.height};
}

data::Box all_of(data::ImageSize size) {
  return {.width = size.width, .height = size.height};
}

data::Image scaled(const data::Image& image, const data::Scaling& scaling) {
  if (image.channels == 3) {
    return data::scale_linear(image, scaling, all_of(scaling.to)).image;
  }
  data::Image out = data::make_image(scaling.to.width, scaling.to.height, 1);
  uint8_t* to = out.pixels.data();
  for (const int y : data::nearest_rows(scaling)) {
    for (const int x : data::nearest_columns(scaling)) *to++ = image.row(y)[x];
  }
  return out;
}

data::Image rotated(const data::Image& image, double degrees) {
  const data::ImageSize size = size_of(image);
  const data::Rotation rotation(size, degrees);
  if (image.channels == 3) {
    return rotation
        .linear(data::whole_tile(image), all_of(size), voc::kPaddingColour)
        .image;
  }
  data::Image out = data::make_image(size.width, size.height, 1);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const auto [from_x, from_y] = rotation.nearest(x, y);
      const bool is_inside = from_x >= 0 && from_y >= 0 &&
                             from_x < size.width && from_y < size.height;
      out.row(y)[x] =
          is_inside ? image.row(from_y)[from_x] : voc::kPaddingLevel;
    }
  }
  return out;
}

data::Image augmented(const data::Image& image, const Case& c) {
  voc::AugmentDraws draws{.scale = c.argument(0),
                          .is_blurred = c.argument(2) != 0,
                          .is_mirrored = c.argument(3) != 0,
                          .across = c.argument(4),
                          .down = c.argument(5)};
  if (c.argument(1) != 0) draws.degrees = c.argument(1);
  const voc::Augmentation way(size_of(image), kAugmentedSide, draws);
  at::Tensor result = image.channels == 3
                          ? way.image(image).permute({1, 2, 0}).contiguous()
                          : way.map(image);
  data::Image out =
      data::make_image(kAugmentedSide, kAugmentedSide, image.channels);
  std::copy_n(result.const_data_ptr<uint8_t>(), out.pixels.size(),
              out.pixels.data());
  return out;
}

data::Image Case::ours() const {
  if (kind == "labels") return data::read_label_map(file);
  if (kind == "colours") return data::read_image(file);
  const data::Image image =
      is_photo() ? data::read_image(file) : data::read_label_map(file);
  if (kind == "size") {
    return scaled(image, data::scaling_to(size_of(image), {width, height}));
  }
  if (kind == "factor") {
    return scaled(image, data::scaling_by(size_of(image), argument(0)));
  }
  if (kind == "rotate") return rotated(image, argument(0));
  if (kind == "blur") {
    return data::blur_5x5(data::whole_tile(image), all_of(size_of(image)))
        .image;
  }
  if (kind == "augment") return augmented(image, *this);
  if (kind == "scribbles")
    return voc::scribble_distance_map(image, argument(0));
  return voc::outline_distance_map(image, argument(0));
}

// Labels that use all of VOC's colours.
void write_ours(const testing::TempDir& folder) {
  data::Image labels = data::make_image(40, 32, 1);
  for (size_t i = 0; i < labels.pixels.size(); ++i) {
    labels.pixels[i] = static_cast<uint8_t>(i);
  }
  folder.write("ours-voc.png",
               data::encode_palette_png(labels, data::voc_palette()));
}

std::vector<Case> ask_python(const testing::TempDir& folder) {
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/scribble_data_reference.py",
                    folder.path().string()});
  EXPECT_EQ(python.exit_code, 0) << python.err;
  std::istringstream lines(python.out);
  std::vector<Case> cases;
  Case next;
  while (lines >> next.kind >> next.file >> next.argument_text >> next.width >>
         next.height >> next.result) {
    cases.push_back(next);
  }
  return cases;
}

// One level where an image with an odd side is halved, since OpenCV leaves its
// own convention there and averages four pixels. All else is equal.
int allowed_difference(const Case& c) {
  return c.kind == "factor" && c.is_photo() && c.argument(0) == 0.5 ? 1 : 0;
}

TEST(ScribbleDataParity, ImagesAndMapsAreThoseOfOpenCvPillowAndScipy) {
  const testing::TempDir folder;
  write_ours(folder);
  std::map<std::string, int> compared;
  for (const Case& c : ask_python(folder)) {
    EXPECT_LE(testing::largest_difference(c.ours(), c.theirs()),
              allowed_difference(c))
        << c.kind << " " << c.file << " " << c.argument_text << " " << c.width
        << "x" << c.height;
    ++compared[c.kind];
  }
  const std::map<std::string, int> expected = {
      {"augment", 32}, {"blur", 2},      {"colours", 1},
      {"factor", 28},  {"labels", 7},    {"outlines", 9},
      {"rotate", 28},  {"scribbles", 9}, {"size", 24}};
  EXPECT_EQ(compared, expected);
}

}  // namespace
}  // namespace lockstep
