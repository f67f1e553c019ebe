// The data of scribble segmentation: a folder in the layout of Pascal VOC with
// scribbles, pseudo labels and maps of distances, or generated images.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/dataset.h"
#include "lockstep/datasets/voc/augment.h"
#include "lockstep/datasets/voc/samples.h"

namespace lockstep::voc {

// What there is to learn from.
enum class ScribbleMode {
  kScribbleOnly,
  kPseudoOnly,  // Pseudo labels take the place of scribbles.
  kScribblePseudo,
  kScribblePseudoDs,  // And distances from scribbles,
  kScribblePseudoDc,  // from outlines of pseudo labels,
  kScribblePseudoDsDc,
};

// By its name without the k. SBD_pesudo_distancemap, the original's default,
// is ScribblePseudoDsDc. Throws ConfigError.
ScribbleMode scribble_mode(const std::string& word);

std::vector<std::string> scribble_mode_words();

bool has_scribbles(ScribbleMode mode);
bool has_pseudo(ScribbleMode mode);
bool has_scribble_distances(ScribbleMode mode);
bool has_outline_distances(ScribbleMode mode);

constexpr const char* kBuiltinScribble = "builtin:scribble";

// Paths are the original's flags. Those of maps are below the folder of VOC, or
// absolute.
struct ScribbleDataConfig {
  // The folder of VOC2012, or the one above, or builtin:scribble.
  std::string dataset_path = "dataset/ScribbleSup";
  ScribbleMode mode = ScribbleMode::kScribblePseudoDsDc;
  std::string train_path = "pascal_2012_scribble";
  std::string pesudo_path = "bmp_ws_train_aug_dataset";
  std::string distancemap_s = "distancemap/scribble/dsmp_lambd_e";
  std::string distancemap_c = "distancemap/cam/dsmp_lambd_e6";
  int64_t num_classes = 21;
  AugmentConfig augment = {};  // Its side is also that of centre crops.
};

struct ScribbleSets {
  std::shared_ptr<const ScribbleSamples> train = {};
  std::shared_ptr<const CentreSamples> validation = {};  // Null: none.
};

// What ImageSets/SegmentationAug/train.txt lists, and for validation val.txt,
// when there are truths (SegmentationClassAug, else SegmentationClass). Throws
// ConfigError with a remedy for folders and files that are missing; looks into
// files only when a sample is asked for. A sample throws FormatError or IoError
// with the file's path: also for sizes that differ, and for a label that is not
// a class.
ScribbleSets open_scribble_sets(const ScribbleDataConfig& config);

// Whole images of val.txt with their truths. Throws ConfigError when there
// are none.
std::shared_ptr<const WholeSamples> open_whole_images(
    const ScribbleDataConfig& config);

}  // namespace lockstep::voc
