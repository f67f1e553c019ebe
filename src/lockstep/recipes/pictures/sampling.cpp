#include "lockstep/recipes/pictures/sampling.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/recipes/pictures/grid.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxRows = 10;

// In the order of the rows.
std::vector<int64_t> shown_classes(const PictureSampling& sampling,
                                   int64_t num_classes) {
  if (!sampling.classes.empty()) return sampling.classes;
  std::vector<int64_t> first(
      static_cast<size_t>(std::min(num_classes, kMaxRows)));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

}  // namespace

void describe_picture_sampling(Options& options, const std::string& group,
                               PictureSampling& sampling) {
  options.add("classes", sampling.classes,
              "numbers of the classes to sample; none: the first ten",
              {.minimum = 0, .group = group});
  options.add("copies", sampling.copies, "pictures of each class in a sampling",
              {.minimum = 1, .group = group});
  options.add("sample_files", sampling.files,
              "a sampling as one grid of pictures, or a file for each",
              {.choices = {"grid", "single"}, .group = group});
}

void check_picture_sampling(const PictureSampling& sampling,
                            int64_t num_classes) {
  for (const int64_t label : sampling.classes) {
    if (label < num_classes) continue;
    throw ConfigError(
        fmt::format("--classes {}: there are {} classes, numbered from 0 to {}",
                    label, num_classes, num_classes - 1));
  }
}

int64_t items_of_sampling(const PictureSampling& sampling,
                          int64_t num_classes) {
  return std::ssize(shown_classes(sampling, num_classes)) * sampling.copies;
}

int64_t class_of_item(const PictureSampling& sampling, int64_t num_classes,
                      int64_t item) {
  const auto shown = shown_classes(sampling, num_classes);
  return shown[static_cast<size_t>(item / sampling.copies) % shown.size()];
}

std::vector<OutputFile> picture_files(const NamedCourses& named,
                                      const PictureSampling& sampling,
                                      int64_t num_classes) {
  std::vector<OutputFile> files;
  if (sampling.files == "single") {
    for (int64_t i = 0; i < named.courses.size(0); ++i) {
      const Grid one = make_grid(named.courses.slice(0, i, i + 1),
                                 {.columns = 1, .border = 0});
      files.push_back(
          {.name = fmt::format("{}/class{}_{}.png", named.name,
                               class_of_item(sampling, num_classes, i),
                               i % sampling.copies),
           .bytes = last_picture(one),
           .title = named.title});
    }
    return files;
  }
  const Grid grid = make_grid(named.courses, {.columns = sampling.copies});
  files.push_back({.name = named.name + ".png",
                   .bytes = last_picture(grid),
                   .title = named.title});
  if (named.courses.size(1) > 1) {
    files.push_back({.name = named.name + ".gif",
                     .bytes = film(grid),
                     .title = named.title});
  }
  return files;
}

}  // namespace lockstep
