// Grids of sampled images, as files.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/tensor/tensor.h"

namespace lockstep::recipes {

// uint8 [frames, height, width, 3].
struct Grid {
  at::Tensor frames = {};
};

struct GridLayout {
  int64_t columns = 1;
  int64_t border = 1;  // White pixels around each image.
};

// `trajectories`: [count, frames, C, S, S], uint8, row by row. Grey images
// become RGB. count is a multiple of columns.
Grid make_grid(const at::Tensor& trajectories, const GridLayout& layout);

std::string last_image(const Grid& grid);  // PNG
std::string animation(const Grid& grid);   // GIF

// "1.0", "2.5", "0.125"
std::string scale_text(double scale);

}  // namespace lockstep::recipes
