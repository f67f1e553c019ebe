#include "lockstep/plot/sample_card.h"

#include <gtest/gtest.h>

#include "lockstep/plot/raster.h"
#include "lockstep/plot/svg.h"

namespace lockstep {
namespace {

// Image i has the level i.
formats::ReadGrid grid_of(int rows, int columns, int side) {
  formats::ReadGrid read{.grid = {.rows = rows, .columns = columns}};
  for (int row = 0; row < rows; ++row) {
    read.grid.labels.push_back("class_" + std::to_string(row));
  }
  for (int i = 0; i < rows * columns; ++i) {
    read.images.push_back(
        {.width = side,
         .height = side,
         .pixels = std::vector<uint8_t>(size_t(side * side * 3), uint8_t(i))});
  }
  return read;
}

plot::RunCurves one_loss() {
  plot::RunCurves curves{.title = "what it draws"};
  curves.train_loss.add(1, 0.5);
  curves.train_loss.add(2, 0.25);
  return curves;
}

std::vector<plot::Image> images_of(const plot::Drawing& drawing) {
  std::vector<plot::Image> images;
  for (const plot::Shape& shape : drawing.shapes) {
    if (const auto* image = std::get_if<plot::Image>(&shape)) {
      images.push_back(*image);
    }
  }
  return images;
}

TEST(SampleCard, ClassesAreNamedAboveTheirImages) {
  const plot::Drawing drawing =
      plot::draw_sample_card(one_loss(), grid_of(3, 2, 16));
  const std::string svg = plot::to_svg(drawing);
  for (const char* text :
       {">what it draws<", ">class_0<", ">class_2<", ">train 0.25<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  const auto images = images_of(drawing);
  ASSERT_EQ(images.size(), 6U);
  EXPECT_EQ(images[0].corner.x, images[1].corner.x);  // One class, two copies.
  EXPECT_LT(images[0].corner.y, images[1].corner.y);
  EXPECT_LT(images[1].corner.x, images[2].corner.x);
  EXPECT_EQ(images[5].pixels[0], 5);
}

TEST(SampleCard, ImagesAreEnlargedByAWholeFactor) {
  for (const auto& [side, shown] :
       {std::pair(16, 96), std::pair(32, 96), std::pair(28, 84),
        std::pair(96, 96), std::pair(256, 96), std::pair(1, 96)}) {
    const auto images =
        images_of(plot::draw_sample_card(one_loss(), grid_of(1, 1, side)));
    EXPECT_EQ(images.at(0).width, shown) << side;
    EXPECT_EQ(images.at(0).height, shown) << side;
  }
}

TEST(SampleCard, OfManyTheFirstAreShown) {
  const plot::Drawing drawing =
      plot::draw_sample_card(one_loss(), grid_of(12, 7, 8));
  EXPECT_EQ(images_of(drawing).size(),
            size_t{plot::kMostShownClasses * plot::kMostShownCopies});
  const auto pixels = plot::to_pixels(drawing);
  EXPECT_EQ(pixels.size(), size_t(drawing.width) * size_t(drawing.height) * 3);
}

}  // namespace
}  // namespace lockstep
