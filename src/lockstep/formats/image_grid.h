// Grids of images as PNG files that say how to take them apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/formats/png.h"

namespace lockstep::formats {

// Rows and columns of images of equal size, each with a border around it.
struct ImageGrid {
  int rows = 0;
  int columns = 0;
  int border = 0;                        // Pixels, on all sides of an image.
  std::vector<std::string> labels = {};  // One per row.
};

// The text that a PNG file carries; see PngPixels.
PngText grid_text(const ImageGrid& grid);

// RGB, 8 bits per channel, rows from top to bottom.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels = {};
};

// A grid that was read: image (row, column) is images[row * columns + column].
struct ReadGrid {
  ImageGrid grid = {};
  std::vector<RgbImage> images = {};
};

// No value for a PNG file without grid_text(). Throws FormatError for a damaged
// file, or one whose size does not fit its grid.
std::optional<ReadGrid> read_image_grid(std::string_view png);

}  // namespace lockstep::formats
