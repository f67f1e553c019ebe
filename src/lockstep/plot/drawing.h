// A drawing as a list of shapes, which becomes an SVG file (svg.h) or pixels
// (raster.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::plot {

// Pixels from the left and from the top.
struct Point {
  double x = 0;
  double y = 0;
};

struct Color {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
  double opacity = 1;
};

// Through all points, with round ends and corners. One point is a dot.
struct Line {
  std::vector<Point> points = {};
  Color color = {};
  double width = 1;
};

struct Rectangle {
  Point corner = {};  // The upper left one.
  double width = 0;
  double height = 0;
  Color color = {};
};

struct Disc {
  Point center = {};
  double radius = 0;
  Color color = {};
};

enum class Align { kLeft, kCenter, kRight };

struct Label {
  Point at = {};  // On the baseline.
  std::string text = {};
  double size = 12;
  Color color = {};
  Align align = Align::kLeft;
};

// Enlarged without blur: every pixel becomes a rectangle.
struct Image {
  Point corner = {};  // The upper left one.
  double width = 0;
  double height = 0;
  int columns = 0;  // Pixels of the source.
  int rows = 0;
  std::vector<uint8_t> pixels = {};  // Red, green, blue; row by row.
};

using Shape = std::variant<Line, Rectangle, Disc, Label, Image>;

// Later shapes cover earlier ones; the ground is white.
struct Drawing {
  int width = 0;
  int height = 0;
  std::vector<Shape> shapes = {};
};

}  // namespace lockstep::plot
