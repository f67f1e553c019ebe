#include "lockstep/datasets/voc/distance_map.h"

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"

namespace lockstep::voc {
namespace {

bool is_object(uint8_t label) { return label != 0 && label != data::kNoLabel; }

// The distance in each column alone, `far` where it has no pixel of the mask.
std::vector<int32_t> column_distances(const data::Image& mask, int32_t far) {
  const auto width = static_cast<size_t>(mask.width);
  std::vector<int32_t> distances(mask.pixels.size());
  for (size_t x = 0; x < width; ++x) {
    distances[x] = mask.pixels[x] != 0 ? 0 : far;
  }
  for (size_t i = width; i < distances.size(); ++i) {
    distances[i] =
        mask.pixels[i] != 0 ? 0 : std::min(far, distances[i - width] + 1);
  }
  for (size_t i = distances.size() - width; i-- > 0;) {
    distances[i] = std::min(distances[i], distances[i + width] + 1);
  }
  return distances;
}

// The least parabola at every place of a row: each column gives one, with its
// own distance as height. A stack keeps those that are least somewhere.
class RowPass {
 public:
  explicit RowPass(int64_t width) : width_(width), stack_(size_t(width)) {}

  void run(const int32_t* columns, int64_t* out) {
    size_t count = 0;
    for (int64_t at = 0; at < width_; ++at) {
      count = push({.apex = at, .height = square(columns[at])}, count);
    }
    for (int64_t at = width_ - 1; at >= 0; --at) {
      const Parabola& least = stack_[count - 1];
      out[at] = square(at - least.apex) + least.height;
      if (at == least.begin) --count;
    }
  }

 private:
  struct Parabola {
    int64_t apex = 0;
    int64_t height = 0;
    int64_t begin = 0;  // The first place where it is the least.
  };

  static int64_t square(int64_t value) { return value * value; }

  static int64_t height_at(const Parabola& parabola, int64_t at) {
    return square(at - parabola.apex) + parabola.height;
  }

  size_t push(Parabola next, size_t count) {
    while (count > 0 && height_at(stack_[count - 1], stack_[count - 1].begin) >
                            height_at(next, stack_[count - 1].begin)) {
      --count;
    }
    if (count > 0) {
      const Parabola& last = stack_[count - 1];
      // The last place where `last` is not above `next`.
      const int64_t crossing =
          (square(next.apex) - square(last.apex) + next.height - last.height) /
          (2 * (next.apex - last.apex));
      if (crossing + 1 >= width_) return count;
      next.begin = crossing + 1;
    }
    stack_[count] = next;
    return count + 1;
  }

  int64_t width_;
  std::vector<Parabola> stack_;
};

void check_is_map(const data::Image& map) {
  LOCKSTEP_CHECK(map.channels == 1 && !map.pixels.empty(),
                 "a map has one channel");
}

// min(255, sqrt(lambda) * distance), rounded down.
std::vector<uint8_t> levels(const data::Image& mask, double lambda) {
  const double factor = std::sqrt(lambda);
  std::vector<uint8_t> out(mask.pixels.size(), 255);
  const std::vector<int64_t> squares = squared_distances(mask);
  for (size_t i = 0; i < out.size(); ++i) {
    if (squares[i] < 0) continue;
    const double distance = std::sqrt(static_cast<double>(squares[i]));
    out[i] = static_cast<uint8_t>(std::min(255.0, factor * distance));
  }
  return out;
}

// 1 on the outline of the foreground, 0 elsewhere.
data::Image outline_of(const data::Image& labels) {
  data::Image outline = data::make_image(labels.width, labels.height, 1);
  // A frame of background, so that every pixel has four neighbours.
  const auto stride = static_cast<size_t>(labels.width) + 2;
  std::vector<uint8_t> objects(stride *
                               (static_cast<size_t>(labels.height) + 2));
  for (int y = 0; y < labels.height; ++y) {
    uint8_t* to = &objects[(static_cast<size_t>(y) + 1) * stride + 1];
    for (int x = 0; x < labels.width; ++x) to[x] = is_object(labels.row(y)[x]);
  }
  for (int y = 0; y < labels.height; ++y) {
    const uint8_t* at = &objects[(static_cast<size_t>(y) + 1) * stride + 1];
    const uint8_t* above = at - stride;
    const uint8_t* below = at + stride;
    const uint8_t* before = at - 1;
    const uint8_t* behind = at + 1;
    uint8_t* to = outline.row(y);
    for (int x = 0; x < labels.width; ++x) {
      const int around = above[x] & below[x] & before[x] & behind[x];
      to[x] = static_cast<uint8_t>(at[x] & (around ^ 1));
    }
  }
  return outline;
}

}  // namespace

std::vector<int64_t> squared_distances(const data::Image& mask) {
  check_is_map(mask);
  std::vector<int64_t> squares(mask.pixels.size(), -1);
  const auto is_set = [](uint8_t value) { return value != 0; };
  if (std::none_of(mask.pixels.begin(), mask.pixels.end(), is_set)) {
    return squares;
  }
  // Larger than every distance in the image, so that it is never the least.
  const int32_t far = mask.width + mask.height;
  const std::vector<int32_t> columns = column_distances(mask, far);
  RowPass pass(mask.width);
  for (size_t row = 0; row < columns.size(); row += size_t(mask.width)) {
    pass.run(&columns[row], &squares[row]);
  }
  return squares;
}

data::Image scribble_distance_map(const data::Image& scribbles, double lambda) {
  check_is_map(scribbles);
  data::Image map = scribbles;
  for (uint8_t& label : map.pixels) label = is_object(label) ? 1 : 0;
  map.pixels = levels(map, lambda);
  for (uint8_t& level : map.pixels) level = static_cast<uint8_t>(255 - level);
  return map;
}

data::Image outline_distance_map(const data::Image& labels, double lambda) {
  check_is_map(labels);
  data::Image map = outline_of(labels);
  map.pixels = levels(map, lambda);
  return map;
}

}  // namespace lockstep::voc
