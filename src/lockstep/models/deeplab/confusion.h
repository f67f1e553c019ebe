// How well labels were found, from counts of (truth, prediction).
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

// int64 [C, C]: truth by rows, prediction by columns. Both maps are of any
// whole-number type and of one shape; pixels whose truth is no class (255)
// count nothing.
at::Tensor confusion_matrix(const at::Tensor& truth,
                            const at::Tensor& prediction, int64_t num_classes);

struct SegmentationScores {
  double iou = 0;       // Mean over the classes that are there.
  double accuracy = 0;  // Over labelled pixels.
  // Per class; NaN for one that neither truth nor prediction has.
  std::vector<double> iou_of_class = {};
};

// `confusion` is on the CPU.
SegmentationScores segmentation_scores(const at::Tensor& confusion);

}  // namespace lockstep::deeplab
