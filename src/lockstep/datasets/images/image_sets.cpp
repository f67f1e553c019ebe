#include "lockstep/datasets/images/image_sets.h"

#include <fmt/format.h>

#include <filesystem>

#include "lockstep/data/dataset_views.h"
#include "lockstep/datasets/images/cifar10.h"
#include "lockstep/datasets/images/shapes.h"
#include "lockstep/error.h"
#include "lockstep/image_folder.h"

namespace lockstep::images {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kShapesToValidate = 2'000;
constexpr int64_t kShapesToCompare = 10'000;  // The first ones of training.
constexpr int64_t kHeldOutImages = 20;        // Every 20th.

constexpr const char* kUsable =
    "the folder of CIFAR-10 (data_batch_1 ... or data_batch_1.bin ..., also "
    "inside cifar-10-batches-py or cifar-10-batches-bin), a folder with one "
    "sub-folder of images per class, or builtin:shapes";

// Mirrored at random to train on, as they are to compare with.
void set_images(std::shared_ptr<const Dataset> images, ImageSets& sets) {
  sets.train = std::make_shared<data::RandomFlip>(images);
  sets.reference = std::move(images);
}

ImageSets open_shapes(int64_t side) {
  ImageSets sets{
      .num_classes = Shapes::kNumClasses,
      .class_names = {Shapes::kClasses.begin(), Shapes::kClasses.end()}};
  set_images(std::make_shared<Shapes>(ShapesConfig{.side = side, .seed = 1}),
             sets);
  sets.reference = std::make_shared<Shapes>(
      ShapesConfig{.num_samples = kShapesToCompare, .side = side, .seed = 1});
  sets.validation = std::make_shared<Shapes>(
      ShapesConfig{.num_samples = kShapesToValidate, .side = side, .seed = 2});
  return sets;
}

ImageSets open_cifar10(const Cifar10Files& files, int64_t side) {
  if (side != kCifar10Side) {
    throw ConfigError(fmt::format(
        "--img_size {}: images of CIFAR-10 have {} x {} pixels; use "
        "--img_size {}",
        side, kCifar10Side, kCifar10Side, kCifar10Side));
  }
  ImageSets sets{.num_classes = kCifar10Classes,
                 .class_names = {kCifar10Names.begin(), kCifar10Names.end()}};
  set_images(read_cifar10(files.train), sets);
  if (!files.test.empty()) sets.validation = read_cifar10(files.test);
  return sets;
}

std::shared_ptr<const ImageFolder> read_folder(const fs::path& path,
                                               int64_t side) {
  return std::make_shared<ImageFolder>(
      path, ImageFolderConfig{.image_size = static_cast<int>(side)});
}

// train/CLASS/... and val/CLASS/..., as ImageNet lies on disks.
ImageSets open_split_folder(const fs::path& path, int64_t side) {
  const auto train = read_folder(path / "train", side);
  const auto validation = read_folder(path / "val", side);
  if (train->classes() != validation->classes()) {
    throw ConfigError("its folders train and val have different classes");
  }
  ImageSets sets{.num_classes = static_cast<int64_t>(train->classes().size()),
                 .class_names = train->classes()};
  set_images(train, sets);
  sets.validation = validation;
  return sets;
}

ImageSets open_folder(const fs::path& path, int64_t side) {
  if (fs::is_directory(path / "train") && fs::is_directory(path / "val")) {
    return open_split_folder(path, side);
  }
  const auto images = read_folder(path, side);
  std::vector<int64_t> train;
  std::vector<int64_t> validation;
  for (int64_t i = 0; i < images->size(); ++i) {
    (i % kHeldOutImages == kHeldOutImages - 1 ? validation : train)
        .push_back(i);
  }
  ImageSets sets{.num_classes = static_cast<int64_t>(images->classes().size()),
                 .class_names = images->classes()};
  set_images(std::make_shared<data::Subset>(images, std::move(train)), sets);
  if (!validation.empty()) {
    sets.validation =
        std::make_shared<data::Subset>(images, std::move(validation));
  }
  return sets;
}

}  // namespace

ImageSets open_image_sets(const std::string& path, int64_t side) {
  if (path == "builtin:shapes") return open_shapes(side);
  if (path.starts_with("builtin:")) {
    throw ConfigError(fmt::format(
        "--data_path {}: there is no such set; the generated one is "
        "builtin:shapes",
        path));
  }
  if (!fs::is_directory(path)) {
    throw ConfigError(
        fmt::format("--data_path {}: there is no such folder; usable are {}",
                    path, kUsable));
  }
  if (const auto files = find_cifar10(path)) return open_cifar10(*files, side);
  try {
    return open_folder(path, side);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("--data_path {}: {}; usable are {}", path,
                                  error.what(), kUsable));
  }
}

int64_t classes_of(const ImageSets& sets, std::optional<int64_t> asked) {
  if (asked && *asked < sets.num_classes) {
    throw ConfigError(fmt::format(
        "--num_classes {}: the data have {} classes; the model needs at least "
        "as many",
        *asked, sets.num_classes));
  }
  return asked.value_or(sets.num_classes);
}

}  // namespace lockstep::images
