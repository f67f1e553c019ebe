#include "lockstep/optim/tensor_groups.h"

#include <ATen/native/ForeachUtils.h>

namespace lockstep::optim {

std::vector<std::vector<size_t>> by_device_and_dtype(
    const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<size_t>> groups;
  if (tensors.empty()) return groups;
  const std::vector<std::optional<at::Tensor>> list(tensors.begin(),
                                                    tensors.end());
  for (const auto& [key, members] :
       at::native::_group_tensors_by_first_tensors_device_and_dtype(
           {list}, /*with_indices=*/true)) {
    groups.push_back(members.second);
  }
  return groups;
}

std::vector<at::Tensor> pick(const std::vector<at::Tensor>& tensors,
                             const std::vector<size_t>& places) {
  std::vector<at::Tensor> picked;
  picked.reserve(places.size());
  for (const size_t place : places) picked.push_back(tensors[place]);
  return picked;
}

void copy_values(const std::vector<at::Tensor>& from,
                 const std::vector<at::Tensor>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

}  // namespace lockstep::optim
