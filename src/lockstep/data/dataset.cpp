#include "lockstep/dataset.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep {

Sample Dataset::collate(std::vector<Sample> samples) const {
  Sample batch;
  for (size_t part = 0; part < samples[0].size(); ++part) {
    std::vector<at::Tensor> parts;
    for (const Sample& sample : samples) parts.push_back(sample.at(part));
    batch.push_back(at::stack(parts));
  }
  return batch;
}

TensorDataset::TensorDataset(std::vector<at::Tensor> tensors)
    : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw ConfigError("a TensorDataset needs a tensor");
  for (const at::Tensor& tensor : tensors_) {
    if (tensor.dim() > 0 && tensor.size(0) == tensors_[0].size(0)) continue;
    throw ConfigError(fmt::format(
        "the tensors of a TensorDataset must have the same first dimension: "
        "one has {}, another none or another",
        tensors_[0].dim() > 0 ? tensors_[0].size(0) : 0));
  }
}

int64_t TensorDataset::size() const { return tensors_[0].size(0); }

Sample TensorDataset::get(int64_t index, uint64_t) const {
  Sample sample;
  for (const at::Tensor& tensor : tensors_) sample.push_back(tensor[index]);
  return sample;
}

}  // namespace lockstep
