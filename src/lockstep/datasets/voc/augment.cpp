#include "lockstep/datasets/voc/augment.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep::voc {
namespace {

// Where the crop begins along one side. An image that is too small has its
// padding on both sides, the odd pixel behind it.
int crop_begin(int size, int side, const std::optional<double>& place) {
  if (size < side) return -((side - size) / 2);
  if (!place) return (size - side) / 2;
  const int room = size - side;
  return std::min(room, static_cast<int>(*place * (room + 1)));
}

struct Span {
  int begin = 0;
  int count = 0;
};

Span shown_part(int begin, int side, int size) {
  const int first = std::max(begin, 0);
  return {.begin = first, .count = std::min(begin + side, size) - first};
}

// Pixels of three channels to planes. `step` is from one pixel to the next: -3
// mirrors.
void spread(const uint8_t* first, int step, int count, uint8_t* to,
            int64_t plane) {
  for (int c = 0; c < 3; ++c) {
    const uint8_t* from = first + c;
    uint8_t* out = to + c * plane;
    for (int x = 0; x < count; ++x, from += step) out[x] = *from;
  }
}

}  // namespace

AugmentDraws draw_augmentation(const AugmentConfig& config, uint64_t seed) {
  RandomStream random(seed);
  const auto between = [&random](double low, double high) {
    return low + (high - low) * random.uniform();
  };
  AugmentDraws draws;
  draws.scale = between(config.least_scale, config.largest_scale);
  if (random.chance(config.rotate_chance)) {
    draws.degrees = between(-config.most_degrees, config.most_degrees);
  }
  draws.is_blurred = random.chance(config.blur_chance);
  draws.is_mirrored = random.chance(config.mirror_chance);
  draws.down = random.uniform();
  draws.across = random.uniform();
  return draws;
}

Augmentation::Augmentation(data::ImageSize size, int64_t side,
                           const AugmentDraws& draws)
    : draws_(draws), side_(static_cast<int>(side)) {
  constexpr int64_t kLargestSide = 1 << 14;
  if (side < 1 || side > kLargestSide) {
    throw ConfigError(
        fmt::format("a crop of {0}x{0} pixels: the side must be 1 to {1}", side,
                    kLargestSide));
  }
  scaling_ = data::scaling_by(size, draws.scale);
  const data::ImageSize scaled = scaling_.to;
  if (draws.degrees) rotation_.emplace(scaled, *draws.degrees);
  left_ = crop_begin(scaled.width, side_, draws.across);
  top_ = crop_begin(scaled.height, side_, draws.down);
  const Span columns = shown_part(left_, side_, scaled.width);
  const Span rows = shown_part(top_, side_, scaled.height);
  window_ = {.left = draws.is_mirrored
                         ? scaled.width - columns.begin - columns.count
                         : columns.begin,
             .top = rows.begin,
             .width = columns.count,
             .height = rows.count};
  pixels_ = find_pixels();
}

std::vector<int32_t> Augmentation::find_pixels() const {
  const std::vector<int> columns = data::nearest_columns(scaling_);
  const std::vector<int> rows = data::nearest_rows(scaling_);
  const auto source = [&](int x, int y) -> int32_t {
    if (rotation_) {
      const data::Rotation::Place at = rotation_->nearest(x, y);
      x = at.x;
      y = at.y;
      if (x < 0 || y < 0 || x >= scaling_.to.width || y >= scaling_.to.height) {
        return -1;
      }
    }
    return rows[size_t(y)] * scaling_.from.width + columns[size_t(x)];
  };
  std::vector<int32_t> pixels(size_t(side_) * size_t(side_), -1);
  const Span shown = shown_part(left_, side_, scaling_.to.width);
  for (int y = 0; y < window_.height; ++y) {
    int32_t* out = &pixels[size_t(window_.top + y - top_) * size_t(side_)] +
                   (shown.begin - left_);
    for (int x = 0; x < window_.width; ++x) {
      const int at = draws_.is_mirrored ? window_.width - 1 - x : x;
      out[at] = source(window_.left + x, window_.top + y);
    }
  }
  return pixels;
}

at::Tensor Augmentation::image(const data::Image& image) const {
  LOCKSTEP_CHECK(image.channels == 3, "an image has three channels");
  const data::Box blurred =
      draws_.is_blurred ? data::grown(window_, 2, scaling_.to) : window_;
  const data::Box needed = rotation_ ? rotation_->source_of(blurred) : blurred;
  data::Tile tile = data::scale_linear(image, scaling_, needed);
  if (rotation_) tile = rotation_->linear(tile, blurred, kPaddingColour);
  if (draws_.is_blurred) tile = data::blur_5x5(tile, window_);
  const int64_t plane = int64_t{side_} * side_;
  at::Tensor out = at::empty({3, side_, side_}, at::kByte);
  auto* levels = out.mutable_data_ptr<uint8_t>();
  for (int64_t c = 0; c < 3; ++c) {
    std::fill_n(levels + c * plane, plane, kPaddingColour[size_t(c)]);
  }
  const Span columns = shown_part(left_, side_, scaling_.to.width);
  for (int y = 0; y < window_.height; ++y) {
    uint8_t* to = levels + int64_t{window_.top + y - top_} * side_ +
                  (columns.begin - left_);
    const uint8_t* row = tile.image.row(y);
    if (draws_.is_mirrored) {
      spread(row + 3 * (columns.count - 1), -3, columns.count, to, plane);
    } else {
      spread(row, 3, columns.count, to, plane);
    }
  }
  return out;
}

at::Tensor Augmentation::map(const data::Image& map) const {
  LOCKSTEP_CHECK(map.channels == 1 && map.width == scaling_.from.width &&
                     map.height == scaling_.from.height,
                 "a map has one channel and the size of its image");
  at::Tensor out = at::empty({side_, side_}, at::kByte);
  auto* levels = out.mutable_data_ptr<uint8_t>();
  const uint8_t* from = map.pixels.data();
  for (size_t i = 0; i < pixels_.size(); ++i) {
    levels[i] = pixels_[i] < 0 ? kPaddingLevel : from[pixels_[i]];
  }
  return out;
}

}  // namespace lockstep::voc
