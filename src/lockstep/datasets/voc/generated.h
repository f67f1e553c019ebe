// Generated images with scribbles: data without files.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/datasets/voc/samples.h"
#include "lockstep/datasets/voc/voc_set.h"

namespace lockstep::voc {

// Objects of five kinds, each with its own outline, colours and pattern, on a
// patterned background (0), about 96 x 80 pixels. An image depends on its
// number alone.
constexpr int64_t kGeneratedClasses = 6;
constexpr int64_t kGeneratedToTrain = 200;
constexpr int64_t kGeneratedToValidate = 40;

// Labels are strokes in most objects and in the background. Pseudo labels have
// mistakes along outlines. Distances are made with the usual lambdas.
std::shared_ptr<const ImageSource> generated_scribbles(ScribbleMode mode);

// Other images, with their truths as labels.
std::shared_ptr<const ImageSource> generated_truths();

}  // namespace lockstep::voc
