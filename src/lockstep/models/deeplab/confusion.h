// Segmentation metrics from a confusion matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

// int64 [C, C]: truth by rows, prediction by columns. Both maps have the same
// shape and any integer type; pixels without a class (255) are ignored.
at::Tensor confusion_matrix(const at::Tensor& truth,
                            const at::Tensor& prediction, int64_t num_classes);

struct SegmentationScores {
  double iou = 0;       // Mean over the classes present.
  double accuracy = 0;  // Over labelled pixels.
  // Per class; NaN for a class in neither truth nor prediction.
  std::vector<double> iou_of_class = {};
};

// `confusion` is on the CPU.
SegmentationScores segmentation_scores(const at::Tensor& confusion);

}  // namespace lockstep::deeplab
