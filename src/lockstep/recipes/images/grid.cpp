#include "lockstep/recipes/images/grid.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/formats/gif.h"
#include "lockstep/formats/image_grid.h"
#include "lockstep/formats/png.h"

namespace lockstep::recipes {
namespace {

int side(const at::Tensor& frames, int64_t dimension) {
  return static_cast<int>(frames.size(dimension));
}

formats::PngText text_of(const Grid& grid) {
  if (grid.labels.empty()) return {};
  return formats::grid_text({.rows = static_cast<int>(grid.labels.size()),
                             .columns = static_cast<int>(grid.layout.columns),
                             .border = static_cast<int>(grid.layout.border),
                             .labels = grid.labels});
}

std::span<const uint8_t> bytes_of(const at::Tensor& pixels) {
  return {pixels.const_data_ptr<uint8_t>(), pixels.nbytes()};
}

}  // namespace

Grid make_grid(const at::Tensor& trajectories, const GridLayout& layout) {
  const int64_t border = layout.border;
  const int64_t columns = layout.columns;
  const at::Tensor framed =
      torch::constant_pad_nd(trajectories.expand({-1, -1, 3, -1, -1}),
                             {border, border, border, border}, 255);
  const int64_t height = framed.size(3);
  const int64_t width = framed.size(4);
  const int64_t rows = framed.size(0) / columns;
  return {.frames =
              framed.view({rows, columns, framed.size(1), 3, height, width})
                  .permute({2, 0, 4, 1, 5, 3})
                  .reshape({framed.size(1), rows * height, columns * width, 3})
                  .contiguous(),
          .layout = layout};
}

std::string last_image(const Grid& grid) {
  const at::Tensor last = grid.frames[-1];
  return formats::encode_png({.width = side(grid.frames, 2),
                              .height = side(grid.frames, 1),
                              .pixels = bytes_of(last),
                              .text = text_of(grid)});
}

std::string animation(const Grid& grid) {
  return formats::encode_gif({.width = side(grid.frames, 2),
                              .height = side(grid.frames, 1),
                              .num_frames = side(grid.frames, 0),
                              .pixels = bytes_of(grid.frames)});
}

std::string scale_text(double scale) {
  std::string text = fmt::format("{}", scale);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace lockstep::recipes
