// Images made by code, and image files of every kind.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/image.h"

namespace lockstep::testing {

// Smooth colours with a disc; the same on every machine.
data::Image test_image(int width, int height);

enum class JpegKind { kBaseline, kProgressive, kGrey, kCmyk, kYcck };

// Quality 95, colours at half resolution. Grey takes the red channel. The inks
// of CMYK and YCCK are inverted, as Adobe writes them: the colours at 80 % of
// their brightness.
std::string encode_jpeg(const data::Image& rgb, JpegKind kind);

struct NamedImage {
  std::string name;  // "palette-4-interlaced"
  std::string bytes;
  data::Image expected;  // RGB
};

// Each colour type and depth of PNG, with and without interlacing.
std::vector<NamedImage> png_of_each_kind();

// The largest difference of two levels; 256 when the shapes differ.
int largest_difference(const data::Image& a, const data::Image& b);

}  // namespace lockstep::testing
