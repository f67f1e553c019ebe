// Image operations with the conventions of OpenCV 4: its places of pixels,
// its fixed-point arithmetic and its rounding.
//
// Each can make just a window of its result, so that a crop behind them saves
// work. Free functions and immutable objects: safe to use from several threads
// at once.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/data/image.h"
#include "lockstep/data/image_ops.h"

namespace lockstep::data {

// A window of a larger image.
struct Tile {
  Image image = {};
  int left = 0;  // Position of the window in the image.
  int top = 0;
  ImageSize whole = {};

  Box box() const;
};

Tile whole_tile(Image image);

bool is_inside(Box inner, Box outer);

// The box with `margin` more on each side, as far as the image goes.
Box grown(Box box, int margin, ImageSize whole);

// How an image changes its size.
struct Scaling {
  ImageSize from = {};
  ImageSize to = {};
  double step_x = 1;  // Pixels of the old image per pixel of the new one.
  double step_y = 1;
};

// cv2.resize(image, (to.width, to.height)). Throws ConfigError for a side below
// 1.
Scaling scaling_to(ImageSize from, ImageSize to);
// cv2.resize(image, None, fx=factor, fy=factor); no side becomes less than 1.
Scaling scaling_by(ImageSize from, double factor);

// By INTER_LINEAR. The image has three channels and the size that the scaling
// begins with. One with an odd side that is halved may differ from OpenCV's by
// a level.
Tile scale_linear(const Image& image, const Scaling& scaling, Box window);

// By INTER_NEAREST: for every column (or row) of the new image that of the
// old one.
std::vector<int> nearest_columns(const Scaling& scaling);
std::vector<int> nearest_rows(const Scaling& scaling);

// cv2.warpAffine with cv2.getRotationMatrix2D((width / 2, height / 2), degrees,
// 1) and BORDER_CONSTANT. The image keeps its size.
class Rotation {
 public:
  // Counter-clockwise for positive degrees.
  Rotation(ImageSize size, double degrees);

  // The part of the old image that a window of the new one needs, at most.
  Box source_of(Box window) const;

  // By INTER_LINEAR. The tile holds source_of(window), or more, of an image
  // with three channels.
  Tile linear(const Tile& tile, Box window,
              const std::array<uint8_t, 3>& border) const;

  struct Place {
    int x = 0;
    int y = 0;
  };
  // By INTER_NEAREST: which pixel of the old image one of the new image
  // shows. It may lie outside.
  Place nearest(int x, int y) const;

 private:
  Place fixed_point(int x, int y) const;

  ImageSize size_;
  // For the column and the row of a pixel, in 1/1024 pixel. Rounded one by one,
  // as in OpenCV.
  std::vector<Place> by_column_;
  std::vector<Place> by_row_;
};

// cv2.GaussianBlur(image, (5, 5), 0) with its usual border, BORDER_REFLECT_101.
// The tile holds grown(window, 2, tile.whole), or more.
Tile blur_5x5(const Tile& tile, Box window);

}  // namespace lockstep::data
