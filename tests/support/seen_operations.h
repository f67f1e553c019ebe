// Watches the operations of libtorch that this thread runs.
#pragma once

#include <ATen/record_function.h>

#include <functional>
#include <memory>
#include <utility>

namespace lockstep::testing {

// Calls `look` before every operation, with name() and inputs(), until its end.
// One at a time per thread.
class SeenOperations {
 public:
  using Look = std::function<void(const at::RecordFunction&)>;

  explicit SeenOperations(Look look) {
    current() = std::move(look);
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&SeenOperations::call)
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  }
  ~SeenOperations() {
    at::removeCallback(handle_);
    current() = {};
  }
  SeenOperations(const SeenOperations&) = delete;
  SeenOperations& operator=(const SeenOperations&) = delete;

 private:
  // libtorch takes a plain function.
  static Look& current() {
    thread_local Look look;
    return look;
  }
  static std::unique_ptr<at::ObserverContext> call(
      const at::RecordFunction& operation) {
    current()(operation);
    return nullptr;
  }

  at::CallbackHandle handle_ = 0;
};

}  // namespace lockstep::testing
