#include "lockstep/plot/raster.h"

#include <algorithm>
#include <cmath>

#include "lockstep/formats/png.h"

namespace lockstep::plot {
namespace {

// Pixels from `begin` to before `end`.
struct Range {
  int begin = 0;
  int end = 0;
};

// The pixels that an interval touches, of those that there are.
Range touched(double low, double high, int count) {
  const auto limit = static_cast<double>(count);
  return {.begin = static_cast<int>(std::clamp(std::floor(low), 0.0, limit)),
          .end = static_cast<int>(std::clamp(std::ceil(high), 0.0, limit))};
}

// The part of pixel `at` that an interval covers.
double overlap(double low, double high, int at) {
  return std::clamp(std::min(high, at + 1.0) - std::max(low, double(at)), 0.0,
                    1.0);
}

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const double along =
      length2 > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2 : 0;
  const double t = std::clamp(along, 0.0, 1.0);
  return std::hypot(p.x - (a.x + t * dx), p.y - (a.y + t * dy));
}

class Raster {
 public:
  Raster(const Drawing& drawing, const Font& font)
      : font_(font),
        width_(drawing.width),
        height_(drawing.height),
        pixels_(size_t(width_) * size_t(height_) * 3, 255),
        mask_(size_t(width_) * size_t(height_), 0) {}

  void operator()(const Line& line);
  void operator()(const Rectangle& box);
  void operator()(const Disc& disc);
  void operator()(const Label& label);
  void operator()(const Image& image);

  std::vector<uint8_t> take_pixels() { return std::move(pixels_); }

 private:
  void blend(int x, int y, const Color& color, double coverage);
  void mask_segment(Point a, Point b, double radius);

  const Font& font_;
  int width_;
  int height_;
  std::vector<uint8_t> pixels_;
  // How much the line that is drawn covers. Its parts overlap, and where they
  // do a line that one sees through must not become darker.
  std::vector<float> mask_;
};

void Raster::blend(int x, int y, const Color& color, double coverage) {
  const double part = coverage * color.opacity;
  uint8_t* pixel = &pixels_[(size_t(y) * size_t(width_) + size_t(x)) * 3];
  const auto mix = [part](uint8_t& below, uint8_t above) {
    below = static_cast<uint8_t>(
        std::lround(below + part * (double(above) - double(below))));
  };
  mix(pixel[0], color.red);
  mix(pixel[1], color.green);
  mix(pixel[2], color.blue);
}

// A pixel is covered by as much as its center is deeper inside than half a
// pixel outside.
void Raster::mask_segment(Point a, Point b, double radius) {
  const double reach = radius + 0.5;
  if (a.y > b.y) std::swap(a, b);
  const Range rows = touched(a.y - reach - 0.5, b.y + reach + 0.5, height_);
  for (int y = rows.begin; y < rows.end; ++y) {
    // The part of the segment that this row is near to.
    const double center = y + 0.5;
    const double slope = b.y > a.y ? (b.x - a.x) / (b.y - a.y) : 0;
    double left = std::min(a.x, b.x);
    double right = std::max(a.x, b.x);
    if (b.y > a.y) {
      const double from = std::clamp(center - reach, a.y, b.y);
      const double to = std::clamp(center + reach, a.y, b.y);
      left = a.x + slope * (from - a.y);
      right = a.x + slope * (to - a.y);
      if (left > right) std::swap(left, right);
    }
    const Range columns =
        touched(left - reach - 0.5, right + reach + 0.5, width_);
    for (int x = columns.begin; x < columns.end; ++x) {
      const double distance = distance_to_segment({x + 0.5, center}, a, b);
      const double covered = std::clamp(reach - distance, 0.0, 1.0);
      float& mask = mask_[size_t(y) * size_t(width_) + size_t(x)];
      mask = std::max(mask, static_cast<float>(covered));
    }
  }
}

void Raster::operator()(const Line& line) {
  if (line.points.empty()) return;
  // A hairline is one pixel wide and fainter.
  const double radius = std::max(line.width, 1.0) / 2;
  const double strength = std::min(line.width, 1.0);
  Point low = line.points[0];
  Point high = low;
  for (size_t i = 0; i < line.points.size(); ++i) {
    const Point& point = line.points[i];
    mask_segment(line.points[i == 0 ? 0 : i - 1], point, radius);
    low = {std::min(low.x, point.x), std::min(low.y, point.y)};
    high = {std::max(high.x, point.x), std::max(high.y, point.y)};
  }
  const double margin = radius + 2;
  const Range rows = touched(low.y - margin, high.y + margin, height_);
  const Range columns = touched(low.x - margin, high.x + margin, width_);
  for (int y = rows.begin; y < rows.end; ++y) {
    for (int x = columns.begin; x < columns.end; ++x) {
      float& mask = mask_[size_t(y) * size_t(width_) + size_t(x)];
      if (mask > 0) blend(x, y, line.color, strength * double{mask});
      mask = 0;
    }
  }
}

void Raster::operator()(const Rectangle& box) {
  const double right = box.corner.x + box.width;
  const double bottom = box.corner.y + box.height;
  const Range rows = touched(box.corner.y, bottom, height_);
  const Range columns = touched(box.corner.x, right, width_);
  for (int y = rows.begin; y < rows.end; ++y) {
    const double part = overlap(box.corner.y, bottom, y);
    for (int x = columns.begin; x < columns.end; ++x) {
      blend(x, y, box.color, part * overlap(box.corner.x, right, x));
    }
  }
}

void Raster::operator()(const Disc& disc) {
  (*this)(Line{
      .points = {disc.center}, .color = disc.color, .width = 2 * disc.radius});
}

void Raster::operator()(const Label& label) {
  Point at = label.at;
  if (label.align != Align::kLeft) {
    const double width = font_.width(label.text, label.size);
    at.x -= label.align == Align::kCenter ? width / 2 : width;
  }
  for (const Glyph& glyph : font_.glyphs(label.text, label.size, at)) {
    for (int row = 0; row < glyph.height; ++row) {
      for (int column = 0; column < glyph.width; ++column) {
        const int x = glyph.left + column;
        const int y = glyph.top + row;
        if (x < 0 || x >= width_ || y < 0 || y >= height_) continue;
        const auto at_pixel =
            size_t(row) * size_t(glyph.width) + size_t(column);
        blend(x, y, label.color, glyph.coverage[at_pixel] / 255.0);
      }
    }
  }
}

void Raster::operator()(const Image& image) {
  const double right = image.corner.x + image.width;
  const double bottom = image.corner.y + image.height;
  const Range rows = touched(image.corner.y, bottom, height_);
  const Range columns = touched(image.corner.x, right, width_);
  const auto source = [](double place, double size, int count) {
    return std::clamp(static_cast<int>(place / size * count), 0, count - 1);
  };
  for (int y = rows.begin; y < rows.end; ++y) {
    const int row = source(y + 0.5 - image.corner.y, image.height, image.rows);
    for (int x = columns.begin; x < columns.end; ++x) {
      const int column =
          source(x + 0.5 - image.corner.x, image.width, image.columns);
      const uint8_t* pixel =
          &image.pixels[(size_t(row) * size_t(image.columns) + size_t(column)) *
                        3];
      blend(x, y, {.red = pixel[0], .green = pixel[1], .blue = pixel[2]}, 1);
    }
  }
}

}  // namespace

std::vector<uint8_t> to_pixels(const Drawing& drawing, const Font& font) {
  Raster raster(drawing, font);
  for (const Shape& shape : drawing.shapes) {
    std::visit([&](const auto& known) { raster(known); }, shape);
  }
  return raster.take_pixels();
}

std::string to_png(const Drawing& drawing, const Font& font) {
  const std::vector<uint8_t> pixels = to_pixels(drawing, font);
  return formats::encode_png({.width = drawing.width,
                              .height = drawing.height,
                              .pixels = pixels,
                              .content = formats::PngContent::kDrawing});
}

}  // namespace lockstep::plot
