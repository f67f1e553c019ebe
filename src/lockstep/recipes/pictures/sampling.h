// Which pictures a sampling shows, and as which files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/config/options.h"
#include "lockstep/tensor/tensor.h"
#include "lockstep/train/recipe.h"

namespace lockstep {

struct PictureSampling {
  std::vector<int64_t> classes = {};  // Empty: the first ten there are.
  int64_t copies = 10;                // Of each class: a row of the grid.
  std::string files = "grid";         // Or "single".
};

void describe_picture_sampling(Options& options, const std::string& group,
                               PictureSampling& sampling);

// Throws ConfigError for a class that the data have not.
void check_picture_sampling(const PictureSampling& sampling,
                            int64_t num_classes);

// In the order of the rows.
std::vector<int64_t> shown_classes(const PictureSampling& sampling,
                                   int64_t num_classes);

// Courses [classes x copies, frames, C, S, S], uint8, as files whose names
// begin with `name`: one grid, with a film of its frames when there are
// several, or a picture each: {name}/class{c}_{k}.png. `title` is what trackers
// call the grid.
struct NamedCourses {
  std::string name = {};
  std::string title = {};
  at::Tensor courses = {};
};

std::vector<OutputFile> picture_files(const NamedCourses& named,
                                      const PictureSampling& sampling,
                                      int64_t num_classes);

}  // namespace lockstep
