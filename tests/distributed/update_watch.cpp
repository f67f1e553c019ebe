#include "distributed/update_watch.h"

#include <ATen/record_function.h>

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

std::unique_ptr<at::ObserverContext> begin_function(
    const at::RecordFunction& function) {
  if (is_update(function)) installed_watch().before();
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
          .scopes({at::RecordScope::FUNCTION}));
}

}  // namespace lockstep::testing
