#include "lockstep/plot/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/base/printable.h"
#include "lockstep/base/utf8.h"
#include "lockstep/plot/curve_panels.h"
#include "lockstep/plot/value_text.h"

namespace lockstep::plot {
namespace {

constexpr int kMostTextSide = 24;  // Letters of an image.
constexpr const char* kUpperHalf = "\xe2\x96\x80";

struct Pixel {
  int red = 0;
  int green = 0;
  int blue = 0;
};

// The mean of what lies behind one pixel of a smaller image.
Pixel mean_pixel(const formats::RgbImage& image, int x, int y, int side) {
  const auto range = [side](int at, int size) {
    const int begin = at * size / side;
    return std::pair(begin, std::max(begin + 1, (at + 1) * size / side));
  };
  const auto [left, right] = range(x, image.width);
  const auto [top, bottom] = range(y, image.height);
  Pixel sum;
  for (int row = top; row < bottom; ++row) {
    for (int column = left; column < right; ++column) {
      const uint8_t* from =
          &image.pixels[(size_t(row) * size_t(image.width) + size_t(column)) *
                        3];
      sum.red += from[0];
      sum.green += from[1];
      sum.blue += from[2];
    }
  }
  const int count = (right - left) * (bottom - top);
  return {sum.red / count, sum.green / count, sum.blue / count};
}

// The nearest of the six levels of the 256 colours' cube.
int cube_level(int level) {
  if (level < 48) return 0;
  return level < 115 ? 1 : (level - 35) / 40;
}

std::string color_code(const Pixel& pixel, TerminalColors colors, int ground) {
  if (colors == TerminalColors::k24Bit) {
    return fmt::format("\x1b[{};2;{};{};{}m", ground, pixel.red, pixel.green,
                       pixel.blue);
  }
  return fmt::format("\x1b[{};5;{}m", ground,
                     16 + 36 * cube_level(pixel.red) +
                         6 * cube_level(pixel.green) + cube_level(pixel.blue));
}

std::string block(const Pixel& upper, const Pixel& lower,
                  TerminalColors colors) {
  return color_code(upper, colors, 38) + color_code(lower, colors, 48) +
         kUpperHalf;
}

char shade(const Pixel& upper, const Pixel& lower) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const auto brightness = [](const Pixel& pixel) {
    return 0.299 * pixel.red + 0.587 * pixel.green + 0.114 * pixel.blue;
  };
  const double level = (brightness(upper) + brightness(lower)) / 2 / 256;
  return kShades[static_cast<size_t>(level * double(kShades.size()))];
}

// One line of an image: two rows of its pixels.
std::string image_line(const formats::RgbImage& image, int line, int side,
                       const TerminalAbility& terminal) {
  const bool has_color =
      terminal.has_blocks && terminal.colors != TerminalColors::kNone;
  std::string text;
  for (int x = 0; x < side; ++x) {
    const Pixel upper = mean_pixel(image, x, 2 * line, side);
    const Pixel lower =
        mean_pixel(image, x, std::min(2 * line + 1, side - 1), side);
    if (has_color) {
      text += block(upper, lower, terminal.colors);
    } else {
      text += shade(upper, lower);
    }
  }
  return has_color ? text + "\x1b[0m" : text;
}

// Cut or filled up to a width. Characters from U+1100 on, where those of East
// Asia begin, are two columns wide.
std::string padded(const std::string& text, int width, bool has_blocks) {
  std::string result;
  int used = 0;
  const std::string valid = base::as_utf8(base::printable_text(text));
  std::string_view rest = valid;
  while (!rest.empty()) {
    const size_t size = base::code_point_size(rest);
    const int columns = size > 2 && rest.substr(0, 3) >= "\xe1\x84\x80" ? 2 : 1;
    if (used + columns > width) break;
    result += size == 1 || has_blocks ? std::string(rest.substr(0, size))
                                      : std::string(size_t(columns), '?');
    used += columns;
    rest.remove_prefix(size);
  }
  return result + std::string(static_cast<size_t>(width - used), ' ');
}

// Dots of a curve, two by four in a letter.
class Dots {
 public:
  Dots(int columns, int lines)
      : columns_(columns),
        lines_(lines),
        marks_(size_t(columns) * size_t(lines), 0) {}

  int width() const { return 2 * columns_; }
  int height() const { return 4 * lines_; }

  // From the left and from the top.
  void set(int x, int y) {
    constexpr uint8_t kBits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    marks_[size_t(y / 4) * size_t(columns_) + size_t(x / 2)] |=
        kBits[y % 4][x % 2];
  }

  std::string line(int at, bool has_blocks) const {
    std::string text;
    for (int x = 0; x < columns_; ++x) {
      const uint8_t mark = marks_[size_t(at) * size_t(columns_) + size_t(x)];
      if (mark == 0) {
        text += ' ';
      } else if (!has_blocks) {
        text += '*';
      } else {
        // U+2800 and the dots.
        text += '\xe2';
        text += static_cast<char>(0xa0 | mark >> 6);
        text += static_cast<char>(0x80 | (mark & 0x3f));
      }
    }
    return text;
  }

 private:
  int columns_;
  int lines_;
  std::vector<uint8_t> marks_;
};

// Every column between two points, and what lies between two columns.
void draw_dots(Dots& dots, Point from, Point to) {
  const int steps =
      std::max({1, int(std::abs(to.x - from.x)), int(std::abs(to.y - from.y))});
  for (int i = 0; i <= steps; ++i) {
    const double part = double(i) / steps;
    dots.set(int(std::lround(from.x + part * (to.x - from.x))),
             int(std::lround(from.y + part * (to.y - from.y))));
  }
}

}  // namespace

std::string text_samples(const formats::ReadGrid& grid,
                         const TerminalAbility& terminal) {
  constexpr int kSpace = 2;
  const int side = std::min(
      {kMostTextSide, grid.images.at(0).width, std::max(terminal.columns, 1)});
  const int per_line =
      std::max(1, (terminal.columns + kSpace) / (side + kSpace));
  const std::string space(kSpace, ' ');
  std::string text;
  for (int first = 0; first < grid.grid.rows; first += per_line) {
    const int last = std::min(first + per_line, grid.grid.rows);
    for (int row = first; row < last; ++row) {
      text += padded(grid.grid.labels[size_t(row)], side, terminal.has_blocks);
      text += row + 1 < last ? space : "\n";
    }
    for (int line = 0; line < (side + 1) / 2; ++line) {
      for (int row = first; row < last; ++row) {
        text += image_line(grid.images[size_t(row) * size_t(grid.grid.columns)],
                           line, side, terminal);
        text += row + 1 < last ? space : "\n";
      }
    }
    text += "\n";
  }
  return text;
}

std::string text_curve(const std::string& title, const Series& series,
                       const TerminalAbility& terminal) {
  constexpr int kLines = 8;
  constexpr int kMostColumns = 72;
  constexpr int kNumbers = 10;  // Columns of the numbers on the left.
  if (!series.last()) return "";
  const Axis steps = step_axis({&series}, 6);
  const Axis values = value_axis({&series}, AxisRule::kBySize, 6);
  Dots dots(std::clamp(terminal.columns - kNumbers, 10, kMostColumns), kLines);
  const auto place = [&](Point at) {
    return Point{steps.position(at.x) * (dots.width() - 1),
                 (1 - values.position(at.y)) * (dots.height() - 1)};
  };
  for (const auto& line : shown_lines(series)) {
    for (size_t i = 0; i < line.size(); ++i) {
      draw_dots(dots, place(line[i == 0 ? 0 : i - 1]), place(line[i]));
    }
  }
  std::string text = title + " " + value_text(series.last()->y) + "\n";
  for (int line = 0; line < kLines; ++line) {
    const std::string number = line == 0            ? value_text(values.high)
                               : line == kLines - 1 ? value_text(values.low)
                                                    : "";
    text += fmt::format("{:>{}} {}\n", number, kNumbers - 1,
                        dots.line(line, terminal.has_blocks));
  }
  return text + fmt::format("{:>{}} step {} to {}\n", "", kNumbers - 1,
                            grouped(steps.low), grouped(steps.high));
}

}  // namespace lockstep::plot
