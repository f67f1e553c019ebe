#include "lockstep/datasets/voc/samples.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/data/image_ops.h"
#include "lockstep/datasets/voc/distance_map.h"

namespace lockstep::voc {
namespace {

data::ImageSize size_of(const data::Image& image) {
  return {.width = image.width, .height = image.height};
}

// Every pixel has the level `absent` when there is no such map.
at::Tensor map_or(const Augmentation& augmentation, const data::Image& map,
                  int64_t side, uint8_t absent) {
  if (!map.pixels.empty()) return augmentation.map(map);
  return at::full({side, side}, absent, at::kByte);
}

}  // namespace

ScribbleSamples::ScribbleSamples(std::shared_ptr<const ImageSource> source,
                                 const AugmentConfig& config)
    : source_(std::move(source)), config_(config) {}

Sample ScribbleSamples::get(int64_t index, uint64_t seed) const {
  const LabelledImage item = source_->read(index);
  const int64_t side = config_.side;
  const Augmentation augmentation(size_of(item.image), side,
                                  draw_augmentation(config_, seed));
  return {augmentation.image(item.image), augmentation.map(item.labels),
          map_or(augmentation, item.pseudo, side, data::kNoLabel),
          map_or(augmentation, item.scribble_distances, side, 0),
          map_or(augmentation, item.outline_distances, side, 0)};
}

CentreSamples::CentreSamples(std::shared_ptr<const ImageSource> source,
                             int64_t side)
    : source_(std::move(source)), side_(side) {}

Sample CentreSamples::get(int64_t index, uint64_t /*seed*/) const {
  const LabelledImage item = source_->read(index);
  const Augmentation centre(size_of(item.image), side_, AugmentDraws{});
  return {centre.image(item.image), centre.map(item.labels)};
}

WholeSamples::WholeSamples(std::shared_ptr<const ImageSource> source)
    : source_(std::move(source)) {}

Sample WholeSamples::get(int64_t index, uint64_t /*seed*/) const {
  const LabelledImage item = source_->read(index);
  const at::Tensor size =
      at::tensor({int64_t{item.image.height}, int64_t{item.image.width}});
  return {data::to_tensor(item.image), data::to_tensor(item.labels).squeeze(0),
          size};
}

Sample WholeSamples::collate(std::vector<Sample> samples) const {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<at::Tensor> sizes;
  for (const Sample& sample : samples) {
    height = std::max(height, sample[0].size(1));
    width = std::max(width, sample[0].size(2));
    sizes.push_back(sample[2]);
  }
  const auto count = static_cast<int64_t>(samples.size());
  const at::Tensor images = at::zeros({count, 3, height, width}, at::kByte);
  const at::Tensor truths =
      at::full({count, height, width}, data::kNoLabel, at::kByte);
  for (int64_t i = 0; i < count; ++i) {
    const Sample& sample = samples[static_cast<size_t>(i)];
    const int64_t rows = sample[0].size(1);
    const int64_t columns = sample[0].size(2);
    images[i].narrow(1, 0, rows).narrow(2, 0, columns).copy_(sample[0]);
    truths[i].narrow(0, 0, rows).narrow(1, 0, columns).copy_(sample[1]);
  }
  return {images, truths, at::stack(sizes)};
}

}  // namespace lockstep::voc
