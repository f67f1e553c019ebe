// Chooses the images of a sampling and writes them as files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/options.h"
#include "lockstep/output_file.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::recipes {

struct ImageSampling {
  std::vector<int64_t> classes = {};  // Empty: the first ten.
  int64_t copies = 10;                // Per class: a row of the grid.
  std::string files = "grid";         // Or "single".
};

void describe_image_sampling(Options& options, const std::string& group,
                             ImageSampling& sampling);

// Throws ConfigError for a class that does not exist.
void check_image_sampling(const ImageSampling& sampling, int64_t num_classes);

// Number of items per sampling: classes times copies.
int64_t items_of_sampling(const ImageSampling& sampling, int64_t num_classes);

// The class of an item of a sampling: class by class, copy by copy; wraps
// around after the last.
int64_t class_of_item(const ImageSampling& sampling, int64_t num_classes,
                      int64_t item);

// Trajectories [classes x copies, frames, C, S, S], uint8, as files whose names
// begin with `name`: one grid, with an animation of its frames when there are
// several, or an image each: {name}/class{c}_{k}.png. The PNG of a grid carries
// the names of its rows (formats/image_grid.h). `title` is the name of the grid
// in trackers.
struct NamedTrajectories {
  std::string name = {};
  std::string title = {};
  at::Tensor trajectories = {};
  std::vector<std::string> class_names = {};  // By label; may lack some.
};

std::vector<OutputFile> image_files(const NamedTrajectories& named,
                                    const ImageSampling& sampling,
                                    int64_t num_classes);

}  // namespace lockstep::recipes
