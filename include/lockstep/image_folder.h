// A folder of images as a data set.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/dataset.h"
#include "lockstep/export.h"

namespace lockstep {

// Files that end in .jpg, .jpeg or .png (in any case), at any depth, by folder
// and then by name: torchvision's order.
LOCKSTEP_EXPORT std::vector<std::filesystem::path> images_below(
    const std::filesystem::path& folder);

// How an image of any size becomes a square.
enum class Fit {
  kAdmCrop,  // The centre square; see center_crop_adm().
  kStretch,  // The whole image, by Filter::kBicubic; changes the aspect ratio.
};

struct ImageFolderConfig {
  int image_size = 256;  // Width and height of a sample.
  Fit fit = Fit::kAdmCrop;
  bool random_flip = false;  // Mirrors every second sample, left to right.
  // Lets libjpeg downscale while decoding, to no less than image_size. Up to
  // twice as fast; pixels differ by about 3 of 255 on average. Off: equal to
  // Pillow.
  bool fast_decode = true;
};

// Images in class folders, in the order of torchvision's ImageFolder: each
// sub-folder is a class, numbered in the order of names, and holds its images
// at any depth. A folder without sub-folders is one class. Files that end in
// .jpg, .jpeg or .png (in any case) count, others do not.
//
// A sample is {uint8 [3, image_size, image_size], int64 label}. Immutable; safe
// to use from several threads.
class LOCKSTEP_EXPORT ImageFolder final : public Dataset {
 public:
  // Reads the names of all files. Throws ConfigError if the path is not a
  // folder, or if it or a class has no images; IoError if a folder cannot be
  // read.
  explicit ImageFolder(const std::filesystem::path& folder,
                       ImageFolderConfig config = {});

  int64_t size() const override { return int64_t(files_.size()); }
  // Throws FormatError or IoError with the file's path.
  Sample get(int64_t index, uint64_t seed) const override;

  const std::vector<std::string>& classes() const { return classes_; }
  const std::filesystem::path& path(int64_t index) const {
    return files_.at(size_t(index)).path;
  }
  int64_t label(int64_t index) const { return files_.at(size_t(index)).label; }

 private:
  struct File {
    std::filesystem::path path;
    int64_t label = 0;
  };

  void add_class(const std::filesystem::path& folder);

  ImageFolderConfig config_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

}  // namespace lockstep
