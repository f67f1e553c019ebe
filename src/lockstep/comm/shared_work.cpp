#include "lockstep/comm/shared_work.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::comm {

SharedWork::SharedWork(std::shared_ptr<SharedGroup> group,
                       SharedRequest request)
    : Work(group->rank, request.type, request.title, request.result),
      group_(std::move(group)),
      request_(std::move(request)),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::ofTensors())) {
  number_ =
      group_->notes_collectives
          ? group_->status.start_collective(
                request_.collective, static_cast<int64_t>(request_.call.bytes))
          : group_->status.collectives_started();
}

c10::intrusive_ptr<SharedWork> SharedWork::start(
    const std::shared_ptr<SharedGroup>& group, SharedRequest request,
    bool runs_here) {
  auto work = c10::make_intrusive<SharedWork>(group, std::move(request));
  // The queue keeps the work alive, also when nobody else does.
  const auto owner = std::make_shared<c10::intrusive_ptr<SharedWork>>(work);
  const std::shared_ptr<SharedTask> task(owner, work.get());
  if (runs_here) {
    group->queue.run_now(task);
  } else {
    group->queue.add(task);
  }
  return work;
}

bool SharedWork::wait(std::chrono::milliseconds) {
  group_->queue.wait(*this);
  const std::lock_guard lock(mutex_);
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void SharedWork::begin() noexcept {
  try {
    group_->collectives.begin(request_.call);
  } catch (...) {
    begin_error_ = std::current_exception();
  }
}

void SharedWork::finish(WaitStyle style) noexcept {
  const std::exception_ptr error = run(style);
  if (group_->notes_collectives) {
    if (error) {
      group_->status.fail_collective(number_);
    } else {
      group_->status.finish_collective();
    }
  }
  Work::finish(error);
  if (error) {
    future_->setError(error);
  } else {
    future_->markCompleted(c10::IValue(request_.result));
  }
}

std::exception_ptr SharedWork::run(WaitStyle style) noexcept {
  try {
    try {
      if (begin_error_) std::rethrow_exception(begin_error_);
      group_->collectives.finish(
          request_.call, {.style = style, .timeout_ns = request_.timeout_ns});
      request_.unpack();
    } catch (const TimeoutError& error) {
      throw TimeoutError(describe() + error.what());
    } catch (const PeerError& error) {
      throw PeerError(describe() + error.what());
    }
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// "all_reduce #12 (25.0 MiB) on rank 0 of 2: "
std::string SharedWork::describe() const {
  return fmt::format(
      "{} #{} ({}) on rank {} of {}: ",
      base::collective_name(request_.collective), number_,
      base::bytes_text(static_cast<int64_t>(request_.call.bytes)), group_->rank,
      group_->size);
}

}  // namespace lockstep::comm
