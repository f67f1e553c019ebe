// A user's own images, and what is shown of their segmentation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/data/image.h"
#include "lockstep/output_file.h"

namespace lockstep::voc {

// Images of a folder, and of those in it, or one file.
class OwnImages {
 public:
  OwnImages() = default;
  // Throws ConfigError when there is none.
  explicit OwnImages(const std::filesystem::path& path);

  int64_t size() const { return static_cast<int64_t>(paths_.size()); }
  data::Image read(int64_t index) const;
  // Below the folder, without extension; repeated names get a number.
  const std::string& name(int64_t index) const {
    return names_.at(static_cast<size_t>(index));
  }

 private:
  std::vector<std::filesystem::path> paths_;
  std::vector<std::string> names_;
};

// NAME.png, the classes in VOC's colours, and NAME_overlay.png, the image
// with them over it.
std::vector<OutputFile> segmentation_files(const std::string& name,
                                           const data::Image& image,
                                           const data::Image& classes);

// Three channels.
data::Image coloured(const data::Image& classes);

}  // namespace lockstep::voc
