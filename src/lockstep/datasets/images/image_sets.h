// Images by class, to train on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/dataset.h"

namespace lockstep::images {

struct ImageSets {
  std::shared_ptr<const Dataset> train = {};
  std::shared_ptr<const Dataset> validation = {};  // Null: none.
  // Images to train on, not mirrored: what generated ones are compared with.
  std::shared_ptr<const Dataset> reference = {};
  int64_t num_classes = 0;
  std::vector<std::string> class_names = {};  // By label.
};

// Samples are {uint8 [3, side, side], int64 label}; those to train on are
// mirrored at random. The path is one of
//   builtin:shapes              generated
//   a folder of CIFAR-10        either layout; test_batch is for validation
//   a folder of class folders   of images; every 20th is for validation,
//                               unless there are train/CLASS and val/CLASS
// Throws ConfigError for any other, FormatError and IoError for damaged files.
ImageSets open_image_sets(const std::string& path, int64_t side);

// The classes of a model of these images: those of the sets, or `asked`.
// Throws ConfigError when the sets have more.
int64_t classes_of(const ImageSets& sets, std::optional<int64_t> asked);

}  // namespace lockstep::images
