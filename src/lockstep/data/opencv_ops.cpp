#include "lockstep/data/opencv_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/data/image_codecs.h"
#include "lockstep/data/packed_pixel.h"
#include "lockstep/data/vector_clones.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

// Weights of two neighbours have 11 bits. Sums of a row keep 15 bits, so that
// the second pass is one of 16-bit products of which the upper half counts.
constexpr int kWeightOne = 1 << 11;
constexpr int kRowShift = 4;

struct Tap {
  int first = 0;
  int second = 0;
  int16_t first_weight = 0;
  int16_t second_weight = 0;
};

enum class Axis { kColumns, kRows };

// For places `begin` to `end` of the new axis. Beyond the first and the last
// row both neighbours are that row, with the weights of their place: OpenCV
// rounds there as if they were two.
std::vector<Tap> linear_taps(Axis axis, int from, double step, Box window) {
  const bool is_columns = axis == Axis::kColumns;
  const int begin = is_columns ? window.left : window.top;
  const int count = is_columns ? window.width : window.height;
  std::vector<Tap> taps;
  for (int i = begin; i < begin + count; ++i) {
    const auto at = float((i + 0.5) * step - 0.5);
    const int first = int(std::floor(at));
    float part = at - float(first);
    if (is_columns && (first < 0 || first >= from - 1)) part = 0;
    taps.push_back(
        {.first = std::clamp(first, 0, from - 1),
         .second = std::clamp(first + 1, 0, from - 1),
         .first_weight = int16_t(std::lrint((1.0F - part) * kWeightOne)),
         .second_weight = int16_t(std::lrint(part * kWeightOne))});
  }
  return taps;
}

void scale_rgb_row(const uint8_t* from, const std::vector<Tap>& taps,
                   int16_t* to) {
  for (const Tap& tap : taps) {
    const uint64_t sum =
        packed(from + 3 * size_t(tap.first)) * uint64_t(tap.first_weight) +
        packed(from + 3 * size_t(tap.second)) * uint64_t(tap.second_weight);
    for (int c = 0; c < 3; ++c) {
      *to++ = int16_t(packed_part(sum, c) >> kRowShift);
    }
  }
}

LOCKSTEP_VECTOR_CLONES
void mix_rows(const int16_t* first, const int16_t* second, const Tap& tap,
              size_t count, uint8_t* to) {
  const int first_weight = tap.first_weight;
  const int second_weight = tap.second_weight;
  for (size_t i = 0; i < count; ++i) {
    const int sum =
        ((first[i] * first_weight) >> 16) + ((second[i] * second_weight) >> 16);
    to[i] = uint8_t((sum + 2) >> 2);
  }
}

// Rows of the old image in the width of the new one; the last two are kept.
class ScaledRows {
 public:
  ScaledRows(const Image& image, std::vector<Tap> columns)
      : image_(image), columns_(std::move(columns)) {
    for (auto& row : rows_) row.resize(3 * columns_.size());
  }

  const int16_t* row(int y) {
    const size_t slot = size_t(y) % rows_.size();
    if (held_[slot] != y) {
      scale_rgb_row(image_.row(y), columns_, rows_[slot].data());
      held_[slot] = y;
    }
    return rows_[slot].data();
  }

 private:
  const Image& image_;
  std::vector<Tap> columns_;
  std::array<std::vector<int16_t>, 2> rows_;
  std::array<int, 2> held_ = {-1, -1};
};

std::vector<int> opencv_nearest_places(int from, int to, double step) {
  std::vector<int> places;
  for (int i = 0; i < to; ++i) {
    places.push_back(std::min(int(std::floor(i * step)), from - 1));
  }
  return places;
}

Tile empty_tile(Box window, ImageSize whole, int channels) {
  return {.image = make_image(window.width, window.height, channels),
          .left = window.left,
          .top = window.top,
          .whole = whole};
}

// -1 becomes 1, and `size` becomes size - 2.
int reflected(int at, int size) {
  if (size == 1) return 0;
  while (at < 0 || at >= size) at = at < 0 ? -at : 2 * (size - 1) - at;
  return at;
}

using Rows5 = std::array<const uint8_t*, 5>;

LOCKSTEP_VECTOR_CLONES
void blur_columns(const Rows5& rows, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = uint16_t(rows[0][i] + rows[4][i] + 4 * (rows[1][i] + rows[3][i]) +
                     6 * rows[2][i]);
  }
}

// `step` is the number of channels; `from` is two pixels left of the first.
LOCKSTEP_VECTOR_CLONES
void blur_row(const uint16_t* from, size_t step, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) {
    const uint16_t* at = from + i;
    const int sum =
        at[0] + at[4 * step] + 4 * (at[step] + at[3 * step]) + 6 * at[2 * step];
    to[i] = uint8_t((sum + 128) >> 8);
  }
}

// The window and two pixels on each side, mirrored where the image ends.
void spread_row(const std::vector<uint16_t>& sums, const Tile& tile, Box window,
                std::vector<uint16_t>& row) {
  const auto channels = size_t(tile.image.channels);
  const auto copy = [&](int x, int from, int count) {
    std::copy_n(&sums[size_t(from - tile.left) * channels],
                size_t(count) * channels, &row[size_t(x + 2) * channels]);
  };
  copy(0, window.left, window.width);
  for (const int x : {-2, -1, window.width, window.width + 1}) {
    copy(x, reflected(window.left + x, tile.whole.width), 1);
  }
}

}  // namespace

Box Tile::box() const {
  return {
      .left = left, .top = top, .width = image.width, .height = image.height};
}

Tile whole_tile(Image image) {
  check_image(image);
  const ImageSize size{.width = image.width, .height = image.height};
  return {.image = std::move(image), .whole = size};
}

bool is_inside(Box inner, Box outer) {
  return inner.left >= outer.left && inner.top >= outer.top &&
         inner.left + inner.width <= outer.left + outer.width &&
         inner.top + inner.height <= outer.top + outer.height;
}

Box grown(Box box, int margin, ImageSize whole) {
  const int left = std::max(0, box.left - margin);
  const int top = std::max(0, box.top - margin);
  const int right = std::min(whole.width, box.left + box.width + margin);
  const int bottom = std::min(whole.height, box.top + box.height + margin);
  return {
      .left = left, .top = top, .width = right - left, .height = bottom - top};
}

Scaling scaling_to(ImageSize from, ImageSize to) {
  if (to.width < 1 || to.height < 1) {
    throw ConfigError(fmt::format(
        "cannot resize an image to {}x{} pixels: sides must be at least 1",
        to.width, to.height));
  }
  // OpenCV's order of divisions, which decides some ties.
  return {.from = from,
          .to = to,
          .step_x = 1 / (double(to.width) / from.width),
          .step_y = 1 / (double(to.height) / from.height)};
}

Scaling scaling_by(ImageSize from, double factor) {
  const ImageSize to{
      .width = std::max(1, int(std::lrint(from.width * factor))),
      .height = std::max(1, int(std::lrint(from.height * factor)))};
  return {.from = from, .to = to, .step_x = 1 / factor, .step_y = 1 / factor};
}

Tile scale_linear(const Image& image, const Scaling& scaling, Box window) {
  check_image(image);
  LOCKSTEP_CHECK(image.channels == 3 && image.width == scaling.from.width &&
                     image.height == scaling.from.height,
                 "an image has three channels and the size of its scaling");
  LOCKSTEP_CHECK(is_inside(window, {.width = scaling.to.width,
                                    .height = scaling.to.height}),
                 "a window beyond the image");
  Tile tile = empty_tile(window, scaling.to, image.channels);
  ScaledRows rows(image, linear_taps(Axis::kColumns, scaling.from.width,
                                     scaling.step_x, window));
  const auto taps =
      linear_taps(Axis::kRows, scaling.from.height, scaling.step_y, window);
  for (int y = 0; y < window.height; ++y) {
    const Tap& tap = taps[size_t(y)];
    const int16_t* first = rows.row(tap.first);
    const int16_t* second = rows.row(tap.second);
    mix_rows(first, second, tap, tile.image.row_bytes(), tile.image.row(y));
  }
  return tile;
}

std::vector<int> nearest_columns(const Scaling& scaling) {
  return opencv_nearest_places(scaling.from.width, scaling.to.width,
                               scaling.step_x);
}

std::vector<int> nearest_rows(const Scaling& scaling) {
  return opencv_nearest_places(scaling.from.height, scaling.to.height,
                               scaling.step_y);
}

Tile blur_5x5(const Tile& tile, Box window) {
  LOCKSTEP_CHECK(is_inside(grown(window, 2, tile.whole), tile.box()),
                 "a tile too small");
  const Image& image = tile.image;
  const auto channels = size_t(image.channels);
  Tile out = empty_tile(window, tile.whole, image.channels);
  // Over the width of the tile; then over the window and two on each side.
  std::vector<uint16_t> sums(image.row_bytes());
  std::vector<uint16_t> row((size_t(window.width) + 4) * channels);
  for (int y = 0; y < window.height; ++y) {
    Rows5 rows{};
    for (int k = 0; k < 5; ++k) {
      const int at = reflected(window.top + y + k - 2, tile.whole.height);
      rows[size_t(k)] = image.row(at - tile.top);
    }
    blur_columns(rows, sums.size(), sums.data());
    spread_row(sums, tile, window, row);
    blur_row(row.data(), channels, out.image.row_bytes(), out.image.row(y));
  }
  return out;
}

}  // namespace lockstep::data
