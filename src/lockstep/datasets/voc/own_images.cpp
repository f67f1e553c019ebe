#include "lockstep/datasets/voc/own_images.h"

#include "lockstep/base/strings.h"
#include "lockstep/data/label_map.h"
#include "lockstep/error.h"
#include "lockstep/image_folder.h"

namespace lockstep::voc {

namespace fs = std::filesystem;

OwnImages::OwnImages(const fs::path& path) {
  fs::path root = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    paths_ = images_below(path);
  } else if (fs::exists(path, error)) {
    root = path.parent_path();
    paths_ = {path};
  }
  if (paths_.empty()) {
    throw ConfigError("--images '" + path.string() +
                      "': no image there; expected is a .jpg, .jpeg or .png "
                      "file, or a folder of them");
  }
  for (const fs::path& one : paths_) {
    names_.push_back(one.lexically_relative(root).replace_extension().string());
  }
  base::number_equal_names(names_);
}

data::Image OwnImages::read(int64_t index) const {
  return data::read_image(paths_.at(static_cast<size_t>(index)));
}

data::Image coloured(const data::Image& classes) {
  const auto palette = data::voc_palette();
  data::Image image = data::make_image(classes.width, classes.height, 3);
  for (size_t i = 0; i < classes.pixels.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) {
      image.pixels[3 * i + c] = palette[3 * size_t{classes.pixels[i]} + c];
    }
  }
  return image;
}

std::vector<OutputFile> segmentation_files(const std::string& name,
                                           const data::Image& image,
                                           const data::Image& classes) {
  data::Image overlay = coloured(classes);
  for (size_t i = 0; i < overlay.pixels.size(); ++i) {
    overlay.pixels[i] =
        static_cast<uint8_t>((overlay.pixels[i] + image.pixels[i] + 1) / 2);
  }
  return {{.name = name + ".png",
           .bytes = data::encode_palette_png(classes, data::voc_palette())},
          {.name = name + "_overlay.png", .bytes = data::encode_png(overlay)}};
}

}  // namespace lockstep::voc
