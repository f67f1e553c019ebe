#include "lockstep/datasets/voc/voc_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/data/label_map.h"
#include "lockstep/datasets/voc/distance_map.h"
#include "lockstep/datasets/voc/generated.h"
#include "lockstep/datasets/voc/voc_files.h"
#include "lockstep/error.h"

namespace lockstep::voc {
namespace {

namespace fs = std::filesystem;

const std::array<std::pair<const char*, ScribbleMode>, 7> kModes = {{
    {"ScribbleOnly", ScribbleMode::kScribbleOnly},
    {"PseudoOnly", ScribbleMode::kPseudoOnly},
    {"ScribblePseudo", ScribbleMode::kScribblePseudo},
    {"ScribblePseudoDs", ScribbleMode::kScribblePseudoDs},
    {"ScribblePseudoDc", ScribbleMode::kScribblePseudoDc},
    {"ScribblePseudoDsDc", ScribbleMode::kScribblePseudoDsDc},
    {"SBD_pesudo_distancemap", ScribbleMode::kScribblePseudoDsDc},
}};

// Which files belong to a name; those without a value are not read.
struct VocFiles {
  FilesOfNames images = {};
  FilesOfNames labels = {};
  std::optional<FilesOfNames> pseudo = {};
  std::optional<FilesOfNames> scribble_distances = {};
  std::optional<FilesOfNames> outline_distances = {};
};

void check_voc_labels(const data::Image& labels, const fs::path& path,
                      int64_t num_classes) {
  const auto is_wrong = [num_classes](uint8_t label) {
    return label >= num_classes && label != data::kNoLabel;
  };
  const auto wrong =
      std::find_if(labels.pixels.begin(), labels.pixels.end(), is_wrong);
  if (wrong == labels.pixels.end()) return;
  throw FormatError(fmt::format(
      "label map '{}' has the label {}; there are {} classes, 0 to {} "
      "(--numclasses), and {} for none",
      path.string(), *wrong, num_classes, num_classes - 1, data::kNoLabel));
}

class VocImages final : public ImageSource {
 public:
  VocImages(VocFiles files, std::vector<std::string> names, int64_t num_classes)
      : files_(std::move(files)),
        names_(std::move(names)),
        num_classes_(num_classes) {
    check_files_exist(files_.images, names_);
    check_files_exist(files_.labels, names_);
    for (const auto* maps : {&files_.pseudo, &files_.scribble_distances,
                             &files_.outline_distances}) {
      if (*maps) check_files_exist(**maps, names_);
    }
  }

  int64_t size() const override { return static_cast<int64_t>(names_.size()); }
  std::string name(int64_t index) const override {
    return names_.at(static_cast<size_t>(index));
  }

  LabelledImage read(int64_t index) const override {
    const std::string& name = names_.at(static_cast<size_t>(index));
    LabelledImage item;
    item.image = data::read_image(files_.images.path(name));
    item.labels = read_labels(files_.labels, name, item.image);
    if (files_.pseudo) {
      item.pseudo = read_labels(*files_.pseudo, name, item.image);
    }
    if (files_.scribble_distances) {
      item.scribble_distances =
          read_map(*files_.scribble_distances, name, item.image);
    }
    if (files_.outline_distances) {
      item.outline_distances =
          read_map(*files_.outline_distances, name, item.image);
    }
    return item;
  }

 private:
  data::Image read_map(const FilesOfNames& files, const std::string& name,
                       const data::Image& image) const {
    data::Image map = data::read_label_map(files.path(name));
    if (map.width != image.width || map.height != image.height) {
      throw FormatError(fmt::format(
          "label map '{}' has {} x {} pixels, its image '{}' {} x {}; make "
          "them equal",
          files.path(name).string(), map.width, map.height,
          files_.images.path(name).string(), image.width, image.height));
    }
    return map;
  }

  data::Image read_labels(const FilesOfNames& files, const std::string& name,
                          const data::Image& image) const {
    data::Image labels = read_map(files, name, image);
    check_voc_labels(labels, files.path(name), num_classes_);
    return labels;
  }

  VocFiles files_;
  std::vector<std::string> names_;
  int64_t num_classes_;
};

FilesOfNames images_in(const fs::path& folder) {
  return {.folder = folder / "JPEGImages",
          .ending = ".jpg",
          .what = "images",
          .remedy = "It comes with VOC2012."};
}

std::string prepare_command(const ScribbleDataConfig& config) {
  return fmt::format(
      "lockstep prepare scribble --dataset_path '{}' --train_path '{}' "
      "--pesudo_path '{}' --distancemap_s '{}' --distancemap_c '{}'",
      config.dataset_path, config.train_path, config.pesudo_path,
      config.distancemap_s, config.distancemap_c);
}

VocFiles files_to_train(const fs::path& folder,
                        const ScribbleDataConfig& config) {
  const FilesOfNames scribbles{
      .folder = folder / config.train_path,
      .what = "scribbles (--train_path)",
      .remedy =
          "Name their folder, below that of VOC2012, or use --dataset "
          "PseudoOnly."};
  const FilesOfNames pseudo{
      .folder = folder / config.pesudo_path,
      .what = "pseudo labels (--pesudo_path)",
      .remedy =
          "Name their folder, below that of VOC2012, or use --dataset "
          "ScribbleOnly."};
  const std::string remedy = fmt::format(
      "Name their folder, or have them made: {}", prepare_command(config));
  VocFiles files{.images = images_in(folder)};
  files.labels = has_scribbles(config.mode) ? scribbles : pseudo;
  if (has_scribbles(config.mode) && has_pseudo(config.mode)) {
    files.pseudo = pseudo;
  }
  if (has_scribble_distances(config.mode)) {
    files.scribble_distances = {
        .folder = folder / config.distancemap_s,
        .what = "distances from scribbles (--distancemap_s)",
        .remedy = remedy};
  }
  if (has_outline_distances(config.mode)) {
    files.outline_distances = {
        .folder = folder / config.distancemap_c,
        .what = "distances from outlines (--distancemap_c)",
        .remedy = remedy};
  }
  return files;
}

std::optional<fs::path> truth_folder(const fs::path& folder) {
  for (const char* name : {"SegmentationClassAug", "SegmentationClass"}) {
    std::error_code problem;
    if (fs::is_directory(folder / name, problem)) return folder / name;
  }
  return {};
}

// Null when there is no list, or no folder of truths.
std::shared_ptr<const ImageSource> open_truths(
    const fs::path& folder, const ScribbleDataConfig& config) {
  const fs::path list = voc_list(folder, "val");
  const std::optional<fs::path> truths = truth_folder(folder);
  std::error_code problem;
  if (!truths || !fs::exists(list, problem)) return nullptr;
  VocFiles files{
      .images = images_in(folder),
      .labels = {.folder = *truths,
                 .what = "truths for validation",
                 .remedy = fmt::format("Add them, or take their names out of "
                                       "'{}'.",
                                       list.string())}};
  return std::make_shared<VocImages>(std::move(files), read_voc_names(list),
                                     config.num_classes);
}

void check_classes(const ScribbleDataConfig& config) {
  if (config.dataset_path == kBuiltinScribble &&
      config.num_classes < kGeneratedClasses) {
    throw ConfigError(fmt::format("--numclasses {}: generated images have {}",
                                  config.num_classes, kGeneratedClasses));
  }
  if (config.num_classes >= 2 && config.num_classes <= data::kNoLabel) return;
  throw ConfigError(
      fmt::format("--numclasses {}: 2 to {} classes have a number in a map",
                  config.num_classes, data::kNoLabel));
}

}  // namespace

ScribbleMode scribble_mode(const std::string& word) {
  for (const auto& [name, mode] : kModes) {
    if (word == name) return mode;
  }
  throw ConfigError(fmt::format("--dataset {}: expected one of {}", word,
                                base::join(scribble_mode_words(), ", ")));
}

std::vector<std::string> scribble_mode_words() {
  std::vector<std::string> words;
  for (const auto& [name, mode] : kModes) words.emplace_back(name);
  return words;
}

bool has_scribbles(ScribbleMode mode) {
  return mode != ScribbleMode::kPseudoOnly;
}

bool has_pseudo(ScribbleMode mode) {
  return mode != ScribbleMode::kScribbleOnly;
}

bool has_scribble_distances(ScribbleMode mode) {
  return mode == ScribbleMode::kScribblePseudoDs ||
         mode == ScribbleMode::kScribblePseudoDsDc;
}

bool has_outline_distances(ScribbleMode mode) {
  return mode == ScribbleMode::kScribblePseudoDc ||
         mode == ScribbleMode::kScribblePseudoDsDc;
}

ScribbleSets open_scribble_sets(const ScribbleDataConfig& config) {
  check_classes(config);
  std::shared_ptr<const ImageSource> train;
  std::shared_ptr<const ImageSource> truths;
  if (config.dataset_path == kBuiltinScribble) {
    train = generated_scribbles(config.mode);
    truths = generated_truths();
  } else {
    const fs::path folder = find_voc_folder(config.dataset_path);
    train = std::make_shared<VocImages>(
        files_to_train(folder, config),
        read_voc_names(voc_list(folder, "train")), config.num_classes);
    truths = open_truths(folder, config);
  }
  ScribbleSets sets;
  sets.train = std::make_shared<ScribbleSamples>(train, config.augment);
  if (truths) {
    sets.validation =
        std::make_shared<CentreSamples>(truths, config.augment.side);
  }
  return sets;
}

std::shared_ptr<const WholeSamples> open_whole_images(
    const ScribbleDataConfig& config) {
  check_classes(config);
  if (config.dataset_path == kBuiltinScribble) {
    return std::make_shared<WholeSamples>(generated_truths());
  }
  const fs::path folder = find_voc_folder(config.dataset_path);
  const auto truths = open_truths(folder, config);
  if (!truths) {
    throw ConfigError(fmt::format(
        "there is nothing to evaluate on in '{}': the list '{}' or the folder "
        "SegmentationClassAug is missing",
        folder.string(), voc_list(folder, "val").string()));
  }
  return std::make_shared<WholeSamples>(truths);
}

}  // namespace lockstep::voc
