#include "lockstep/models/deeplab/windows.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/divide.h"

namespace lockstep::deeplab {
namespace {

namespace F = torch::nn::functional;

// Scales both sides so that the longer one has `long_side` pixels.
std::vector<int64_t> scaled_size(int64_t height, int64_t width,
                                 int64_t long_side) {
  const auto shorter = [&](int64_t other, int64_t longest) {
    const double side = static_cast<double>(long_side) /
                        static_cast<double>(longest) *
                        static_cast<double>(other);
    return std::max<int64_t>(1, std::llround(side));
  };
  if (height > width) return {long_side, shorter(width, height)};
  return {shorter(height, width), long_side};
}

// [1, C, h, w]
at::Tensor resized(const at::Tensor& maps, const std::vector<int64_t>& size) {
  return F::interpolate(maps, F::InterpolateFuncOptions()
                                  .size(size)
                                  .mode(torch::kBilinear)
                                  .align_corners(false));
}

// Averaged over the windows that contain a pixel: [C, h, w].
at::Tensor at_one_scale(const at::Tensor& image, const Segment& segment,
                        const WindowsConfig& config) {
  const int64_t side = config.window;
  const auto rows = window_positions(image.size(1), side);
  const auto columns = window_positions(image.size(2), side);
  std::vector<at::Tensor> windows;
  for (const int64_t top : rows) {
    for (const int64_t left : columns) {
      windows.push_back(
          image.slice(1, top, top + side).slice(2, left, left + side));
    }
  }
  std::vector<at::Tensor> parts;
  for (const at::Tensor& some :
       torch::stack(windows).split(config.batch_size)) {
    parts.push_back(segment(some).to(at::kFloat).softmax(1));
  }
  const at::Tensor found = torch::cat(parts);
  at::Tensor sum = torch::zeros(
      {config.num_classes, image.size(1), image.size(2)}, found.options());
  at::Tensor count =
      torch::zeros({image.size(1), image.size(2)}, found.options());
  int64_t next = 0;
  for (const int64_t top : rows) {
    for (const int64_t left : columns) {
      sum.slice(1, top, top + side).slice(2, left, left + side) +=
          found[next++];
      count.slice(0, top, top + side).slice(1, left, left + side) += 1;
    }
  }
  return sum / count;
}

}  // namespace

std::vector<int64_t> window_positions(int64_t length, int64_t window) {
  const int64_t stride = base::divide_up(2 * window, 3);
  std::vector<int64_t> positions;
  for (int64_t position = 0; position + window < length; position += stride) {
    positions.push_back(position);
  }
  positions.push_back(length - window);
  return positions;
}

at::Tensor segment_by_windows(const at::Tensor& image, const Segment& segment,
                              const WindowsConfig& config) {
  const int64_t height = image.size(1);
  const int64_t width = image.size(2);
  at::Tensor sum;
  for (const double scale : config.scales) {
    const auto long_side =
        std::max<int64_t>(1, std::llround(scale * config.base_side));
    const at::Tensor scaled =
        resized(image.unsqueeze(0), scaled_size(height, width, long_side))
            .squeeze(0);
    const int64_t missing_rows =
        std::max<int64_t>(0, config.window - scaled.size(1));
    const int64_t missing_columns =
        std::max<int64_t>(0, config.window - scaled.size(2));
    const int64_t above = missing_rows / 2;
    const int64_t before = missing_columns / 2;
    const at::Tensor padded = torch::constant_pad_nd(
        scaled,
        {before, missing_columns - before, above, missing_rows - above});
    const at::Tensor found = at_one_scale(padded, segment, config)
                                 .slice(1, above, above + scaled.size(1))
                                 .slice(2, before, before + scaled.size(2));
    const at::Tensor whole =
        resized(found.unsqueeze(0), {height, width}).squeeze(0);
    sum = sum.defined() ? sum + whole : whole;
  }
  return sum / static_cast<double>(config.scales.size());
}

}  // namespace lockstep::deeplab
