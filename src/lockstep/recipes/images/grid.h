// Grids of sampled images, as files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::recipes {

struct GridLayout {
  int64_t columns = 1;
  int64_t border = 1;  // White pixels around each image.
};

struct Grid {
  at::Tensor frames = {};  // uint8 [frames, height, width, 3].
  GridLayout layout = {};
  std::vector<std::string> labels = {};  // One per row; may be empty.
};

// `trajectories`: [count, frames, C, S, S], uint8, row by row. Grey images
// become RGB. count is a multiple of columns.
Grid make_grid(const at::Tensor& trajectories, const GridLayout& layout);

// PNG; with labels also the layout, as formats/image_grid.h reads it.
std::string last_image(const Grid& grid);
std::string animation(const Grid& grid);  // GIF

// "1.0", "2.5", "0.125"
std::string scale_text(double scale);

}  // namespace lockstep::recipes
