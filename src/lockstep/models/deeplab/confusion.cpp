#include "lockstep/models/deeplab/confusion.h"

#include <torch/torch.h>

#include <cmath>

namespace lockstep::deeplab {

at::Tensor confusion_matrix(const at::Tensor& truth,
                            const at::Tensor& prediction, int64_t num_classes) {
  const at::Tensor wide = truth.to(at::kLong).flatten();
  // Ignored pixels go to an extra row, so that no size depends on the data.
  const at::Tensor row = torch::where(wide < num_classes, wide,
                                      torch::full_like(wide, num_classes));
  const at::Tensor place =
      row * num_classes + prediction.to(at::kLong).flatten();
  const at::Tensor ones = torch::ones_like(place);
  return torch::zeros({(num_classes + 1) * num_classes}, place.options())
      .index_add_(0, place, ones)
      .view({num_classes + 1, num_classes})
      .slice(0, 0, num_classes);
}

SegmentationScores segmentation_scores(const at::Tensor& confusion) {
  const at::Tensor counts = confusion.to(at::kDouble);
  const at::Tensor right = counts.diagonal().contiguous();
  const at::Tensor all =
      (counts.sum(0) + counts.sum(1) - counts.diagonal()).contiguous();
  SegmentationScores scores{.iou = NAN};
  double sum = 0;
  int64_t num_there = 0;
  for (int64_t c = 0; c < right.size(0); ++c) {
    const double there = all[c].item<double>();
    const double iou = there > 0 ? right[c].item<double>() / there : NAN;
    scores.iou_of_class.push_back(iou);
    if (std::isnan(iou)) continue;
    sum += iou;
    ++num_there;
  }
  if (num_there > 0) scores.iou = sum / static_cast<double>(num_there);
  scores.accuracy = right.sum().item<double>() / counts.sum().item<double>();
  return scores;
}

}  // namespace lockstep::deeplab
