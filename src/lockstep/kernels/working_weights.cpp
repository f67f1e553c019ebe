#include "lockstep/kernels/working_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>

#include <utility>

namespace lockstep::kernels {
namespace {

// Aligned: see nn/weights.cpp.
alignas(16) thread_local const WorkingWeights* current_weights = nullptr;

}  // namespace

WorkingWeights::WorkingWeights(const std::vector<at::Tensor>& parameters,
                               at::ScalarType dtype)
    : dtype_(dtype) {
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.is_cuda() || parameter.scalar_type() != at::kFloat ||
        parameter.dim() < 1 || parameter.dim() > 2 ||
        !parameter.is_contiguous()) {
      continue;
    }
    places_.emplace(parameter.unsafeGetTensorImpl(), entries_.size());
    entries_.push_back(
        {.parameter = parameter,
         .copy = at::empty_like(parameter.detach(),
                                parameter.options().dtype(dtype))});
  }
}

at::Tensor WorkingWeights::find(const at::Tensor& parameter) const {
  const auto at = places_.find(parameter.unsafeGetTensorImpl());
  return at == places_.end() ? at::Tensor() : entries_[at->second].copy;
}

void WorkingWeights::refresh() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> from;
  std::vector<at::Tensor> to;
  for (Entry& entry : entries_) {
    const int64_t version = entry.parameter._version();
    if (!is_changed_ && entry.version == version) continue;
    entry.version = version;
    from.push_back(entry.parameter);
    to.push_back(entry.copy);
  }
  is_changed_ = false;
  if (!to.empty()) at::_foreach_copy_(to, from);
}

const WorkingWeights* WorkingWeights::current() { return current_weights; }

WorkingWeights::Scope::Scope(const WorkingWeights* weights)
    : outer_(std::exchange(current_weights, weights)) {}

WorkingWeights::Scope::~Scope() { current_weights = outer_; }

}  // namespace lockstep::kernels
