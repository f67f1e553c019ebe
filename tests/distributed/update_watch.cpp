#include "distributed/update_watch.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace lockstep::testing {
namespace {

// libtorch's callbacks are plain functions.
UpdateWatch& installed_watch() {
  static UpdateWatch watch;
  return watch;
}

bool is_update(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  return name == "aten::_fused_adamw_" || name == "aten::_fused_adam_" ||
         name == "aten::_fused_sgd_";
}

// Behind parameters and gradients.
std::vector<at::Tensor> state_of(const at::RecordFunction& function) {
  constexpr size_t kFirst = 2;
  constexpr size_t kEnd = 4;
  std::vector<at::Tensor> state;
  const auto inputs = function.inputs();
  for (size_t i = kFirst; i < std::min(kEnd, inputs.size()); ++i) {
    if (!inputs[i].isTensorList()) continue;
    for (const at::Tensor& tensor : inputs[i].toTensorVector()) {
      if (tensor.defined() && tensor.numel() > 0) state.push_back(tensor);
    }
  }
  return state;
}

std::unique_ptr<at::ObserverContext> begin_function(
    const at::RecordFunction& function) {
  if (is_update(function)) installed_watch().before(state_of(function));
  return nullptr;
}

void end_function(const at::RecordFunction& function, at::ObserverContext*) {
  if (is_update(function)) installed_watch().after();
}

}  // namespace

void watch_updates(UpdateWatch watch) {
  installed_watch() = std::move(watch);
  at::addGlobalCallback(
      at::RecordFunctionCallback(&begin_function, &end_function)
          .scopes({at::RecordScope::FUNCTION})
          .needsInputs(true));
}

}  // namespace lockstep::testing
