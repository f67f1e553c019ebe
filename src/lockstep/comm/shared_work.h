// One collective of the shared backend, as c10d sees it. Private to
// shared_backend.cpp.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "lockstep/base/status.h"
#include "lockstep/comm/shared_collectives.h"
#include "lockstep/comm/shared_queue.h"

namespace lockstep::comm {

// What the collectives of one backend have in common.
struct SharedGroup {
  explicit SharedGroup(SharedChannel channel)
      : rank(channel.arena().job_rank(channel.rank())),
        size(channel.arena().job_size()),
        collectives(std::move(channel)) {}

  int rank;  // In the job, as its size.
  int size;
  SharedCollectives collectives;
  base::StatusWriter status = {};
  bool notes_collectives = false;
  SharedQueue queue;
};

// A call with the tensors that it works on.
struct SharedRequest {
  SharedCall call = {};
  base::Collective collective = base::Collective::kNone;
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = nullptr;  // For the profiler.
  std::vector<at::Tensor> result = {};
  // Kept until the end: what the call's pointers point into.
  std::vector<at::Tensor> memory = {};
  // Where results are copied from memory of their own.
  std::function<void()> unpack = [] {};
  int64_t timeout_ns = 0;
};

class SharedWork final : public c10d::Work, public SharedTask {
 public:
  SharedWork(std::shared_ptr<SharedGroup> group, SharedRequest request);

  // Queues it; on this thread it has run when the call returns.
  static c10::intrusive_ptr<SharedWork> start(
      const std::shared_ptr<SharedGroup>& group, SharedRequest request,
      bool runs_here);

  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override { return request_.result; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    return future_;
  }

  void begin() noexcept override;
  void finish(WaitStyle style) noexcept override;

 private:
  std::exception_ptr run(WaitStyle style) noexcept;
  std::string describe() const;

  std::shared_ptr<SharedGroup> group_;
  SharedRequest request_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  int64_t number_ = 0;  // On the status page.
  std::exception_ptr begin_error_;
};

}  // namespace lockstep::comm
