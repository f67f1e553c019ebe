#include "lockstep/recipes/images/sampling.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lockstep/error.h"
#include "lockstep/recipes/images/grid.h"

namespace lockstep::recipes {
namespace {

constexpr int64_t kMaxRows = 10;

// In the order of the rows.
std::vector<int64_t> shown_classes(const ImageSampling& sampling,
                                   int64_t num_classes) {
  if (!sampling.classes.empty()) return sampling.classes;
  std::vector<int64_t> first(
      static_cast<size_t>(std::min(num_classes, kMaxRows)));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

std::string row_label(const std::vector<std::string>& names, int64_t label) {
  const auto at = static_cast<size_t>(label);
  return at < names.size() ? names[at] : fmt::format("class {}", label);
}

}  // namespace

void describe_image_sampling(Options& options, const std::string& group,
                             ImageSampling& sampling) {
  options.add("classes", sampling.classes,
              "numbers of the classes to sample; none: the first ten",
              {.minimum = 0, .group = group});
  options.add("copies", sampling.copies, "images of each class in a sampling",
              {.minimum = 1, .group = group});
  options.add("sample_files", sampling.files,
              "a sampling as one grid of images, or a file for each",
              {.choices = {"grid", "single"}, .group = group});
}

void check_image_sampling(const ImageSampling& sampling, int64_t num_classes) {
  for (const int64_t label : sampling.classes) {
    if (label < num_classes) continue;
    throw ConfigError(
        fmt::format("--classes {}: there are {} classes, numbered from 0 to {}",
                    label, num_classes, num_classes - 1));
  }
}

int64_t items_of_sampling(const ImageSampling& sampling, int64_t num_classes) {
  return std::ssize(shown_classes(sampling, num_classes)) * sampling.copies;
}

int64_t class_of_item(const ImageSampling& sampling, int64_t num_classes,
                      int64_t item) {
  const auto shown = shown_classes(sampling, num_classes);
  return shown[static_cast<size_t>(item / sampling.copies) % shown.size()];
}

std::vector<OutputFile> image_files(const NamedTrajectories& named,
                                    const ImageSampling& sampling,
                                    int64_t num_classes) {
  std::vector<OutputFile> files;
  if (sampling.files == "single") {
    for (int64_t i = 0; i < named.trajectories.size(0); ++i) {
      const Grid one = make_grid(named.trajectories.slice(0, i, i + 1),
                                 {.columns = 1, .border = 0});
      files.push_back(
          {.name = fmt::format("{}/class{}_{}.png", named.name,
                               class_of_item(sampling, num_classes, i),
                               i % sampling.copies),
           .bytes = last_image(one),
           .title = named.title});
    }
    return files;
  }
  Grid grid = make_grid(named.trajectories, {.columns = sampling.copies});
  for (const int64_t label : shown_classes(sampling, num_classes)) {
    grid.labels.push_back(row_label(named.class_names, label));
  }
  files.push_back({.name = named.name + ".png",
                   .bytes = last_image(grid),
                   .title = named.title});
  if (named.trajectories.size(1) > 1) {
    files.push_back({.name = named.name + ".gif",
                     .bytes = animation(grid),
                     .title = named.title});
  }
  return files;
}

}  // namespace lockstep::recipes
