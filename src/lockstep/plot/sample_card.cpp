#include "lockstep/plot/sample_card.h"

#include <algorithm>
#include <cmath>

#include "lockstep/plot/curve_panels.h"
#include "lockstep/plot/plot.h"
#include "lockstep/plot/style.h"
#include "lockstep/plot/value_text.h"

namespace lockstep::plot {
namespace {

constexpr int kImageSide = 96;       // At most, where it is enlarged.
constexpr double kImageGap = 6;      // Between two images.
constexpr double kNamesHeight = 24;  // Above the images.
constexpr double kNameSize = 15;
constexpr double kCurveWidth = 520;
constexpr double kLeastHeight = 360;  // For the curve.

// The size of an image in the card.
struct CardCell {
  double width = 0;
  double height = 0;
};

CardCell cell_of(const formats::RgbImage& image) {
  const int side = std::max(image.width, image.height);
  const double scale = side <= kImageSide
                           ? std::floor(double(kImageSide) / side)
                           : double(kImageSide) / side;
  return {.width = std::round(scale * image.width),
          .height = std::round(scale * image.height)};
}

struct CardLayout {
  int classes = 0;
  int copies = 0;
  CardCell cell = {};

  double left(int column) const {
    return kMargin + column * (cell.width + kImageGap);
  }
  double top(int row) const {
    return kHeaderHeight + kNamesHeight + row * (cell.height + kImageGap);
  }
};

void draw_class(Drawing& drawing, const Font& font,
                const formats::ReadGrid& grid, const CardLayout& layout,
                int label) {
  const double left = layout.left(label);
  drawing.shapes.push_back(
      Label{.at = {left + layout.cell.width / 2, kHeaderHeight + 12},
            .text = cut_to_width(font, grid.grid.labels[size_t(label)],
                                 kNameSize, layout.cell.width + kImageGap),
            .size = kNameSize,
            .color = kInkColor,
            .align = Align::kCenter});
  for (int copy = 0; copy < layout.copies; ++copy) {
    const formats::RgbImage& image =
        grid.images[size_t(label) * size_t(grid.grid.columns) + size_t(copy)];
    drawing.shapes.push_back(Image{.corner = {left, layout.top(copy)},
                                   .width = layout.cell.width,
                                   .height = layout.cell.height,
                                   .columns = image.width,
                                   .rows = image.height,
                                   .pixels = image.pixels});
  }
}

}  // namespace

Drawing draw_sample_card(const RunCurves& curves, const formats::ReadGrid& grid,
                         const Font& font) {
  const CardLayout layout{
      .classes = std::min(grid.grid.rows, kMostShownClasses),
      .copies = std::min(grid.grid.columns, kMostShownCopies),
      .cell = cell_of(grid.images.at(0))};
  const double curve_left = layout.left(layout.classes) - kImageGap + kGap;
  const double curve_height = std::max(
      layout.top(layout.copies) - kImageGap - kHeaderHeight, kLeastHeight);
  Drawing drawing{
      .width = static_cast<int>(std::ceil(curve_left + kCurveWidth + kMargin)),
      .height =
          static_cast<int>(std::ceil(kHeaderHeight + curve_height + kMargin))};
  draw_header(drawing, font,
              {.title = curves.title, .note = step_note(curves)});
  for (int label = 0; label < layout.classes; ++label) {
    draw_class(drawing, font, grid, layout, label);
  }
  draw_loss_panel({.drawing = drawing, .font = font},
                  {.left = curve_left,
                   .top = kHeaderHeight - 4,
                   .width = kCurveWidth,
                   .height = curve_height + 4},
                  curves, step_axis(all_series(curves), 6));
  return drawing;
}

}  // namespace lockstep::plot
