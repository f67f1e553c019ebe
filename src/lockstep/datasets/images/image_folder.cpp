#include "lockstep/image_folder.h"

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/base/files.h"
#include "lockstep/data/image_ops.h"
#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExpected =
    "expected is a folder with one sub-folder of .jpg, .jpeg or .png files per "
    "class, or with such files alone";

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& letter : ending) letter = char(std::tolower(uint8_t(letter)));
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// A dangling link with the name of an image shows when it is read: there it can
// be skipped.
bool is_image_folder(const fs::directory_entry& entry) {
  if (!is_image(entry.path())) return entry.is_directory();
  std::error_code problem;
  return entry.is_directory(problem);
}

std::vector<fs::path> sub_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_image_folder(entry)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.native() < b.native();
  });
  return found;
}

data::Image read_square(const std::string& bytes,
                        const ImageFolderConfig& config) {
  const int side = config.image_size;
  data::ImageRequest request;
  if (config.fast_decode) request.at_least_short_side = side;
  const data::ImageSize full = data::size_of_image(bytes);
  data::Image image = data::decode_image(bytes, request);
  if (config.fit == Fit::kAdmCrop) {
    return data::center_crop_adm(std::move(image), full, side);
  }
  return data::resize(image, full, {.width = side, .height = side},
                      data::Filter::kBicubic);
}

}  // namespace

std::vector<fs::path> images_below(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (auto place = fs::recursive_directory_iterator(folder, options);
       place != fs::recursive_directory_iterator(); ++place) {
    const fs::path& path = place->path();
    if (is_image_folder(*place)) continue;
    place.disable_recursion_pending();  // Else a link to itself would throw.
    if (is_image(path)) {
      found.emplace_back(path.parent_path(), path.filename());
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> paths;
  for (const auto& [parent, name] : found) {
    paths.push_back(fs::path(parent) / name);
  }
  return paths;
}

ImageFolder::ImageFolder(const fs::path& folder, ImageFolderConfig config)
    : config_(config) {
  if (config.image_size < 1) {
    throw ConfigError(
        fmt::format("image folder: image_size is {}; it must be at least 1",
                    config.image_size));
  }
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw ConfigError(fmt::format("image folder '{}' is not a folder: {}",
                                  folder.string(), kExpected));
  }
  try {
    const std::vector<fs::path> classes = sub_folders(folder);
    for (const fs::path& path : classes) add_class(path);
    if (classes.empty()) add_class(fs::canonical(folder));
  } catch (const fs::filesystem_error& problem) {
    throw IoError(fmt::format("cannot read image folder '{}': {}",
                              folder.string(), problem.what()));
  }
}

void ImageFolder::add_class(const fs::path& folder) {
  const auto label = int64_t(classes_.size());
  const std::vector<fs::path> paths = images_below(folder);
  if (paths.empty()) {
    throw ConfigError(fmt::format("folder '{}' holds no images: {}",
                                  folder.string(), kExpected));
  }
  classes_.push_back(folder.filename().string());
  for (const fs::path& path : paths) {
    files_.push_back({.path = path, .label = label});
  }
}

Sample ImageFolder::get(int64_t index, uint64_t seed) const {
  const File& file = files_.at(size_t(index));
  const std::string bytes = base::read_file(file.path);
  try {
    data::Image image = read_square(bytes, config_);
    const bool mirrored = config_.random_flip && (mix_bits(seed) & 1) != 0;
    if (mirrored) image = data::flip_horizontal(image);
    return {data::to_tensor(image), at::scalar_tensor(file.label, at::kLong)};
  } catch (const FormatError& error) {
    throw FormatError(
        fmt::format("image '{}': {}", file.path.string(), error.what()));
  }
}

}  // namespace lockstep
