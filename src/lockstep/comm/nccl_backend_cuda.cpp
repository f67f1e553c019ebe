// The CUDA side of nccl_backend.cpp; part of liblockstep_cuda.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lockstep/comm/nccl_backend.h"
#include "lockstep/comm/recorded_backend.h"
#include "lockstep/export.h"

// The size of ProcessGroupNCCL::Options follows nccl.h: it must be the wheel's.
static_assert(NCCL_VERSION_CODE == NCCL_VERSION(2, 28, 9),
              "compile against the nccl.h of the wheel (nvidia-nccl-cu13)");

namespace lockstep::comm {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// NCCL's futures complete when the collective is queued, and nobody on the host
// waits for its end: a thread asks a few times a second.
class PolledCompletion {
 public:
  explicit PolledCompletion(const base::StatusWriter& status)
      : status_(status), thread_([this] { poll(); }) {}

  ~PolledCompletion() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  // A collective on the caller's stream comes without a work. One that is
  // captured in a CUDA graph (number 0) does not run now, and its events must
  // not be asked for.
  void track(const WorkPtr& work, int64_t number) {
    if (number == 0) return;
    const std::lock_guard lock(mutex_);
    if (work) {
      pending_.push_back(work);
    } else {
      status_.finish_collective();
    }
  }

 private:
  void poll() {
    constexpr std::chrono::milliseconds kPause{100};
    // Asking for an event must not disturb a graph that another thread
    // captures.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    cudaThreadExchangeStreamCaptureMode(&mode);
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      while (!pending_.empty() && is_finished(*pending_.front())) {
        pending_.pop_front();
        status_.finish_collective();
      }
      wake_.wait_for(lock, kPause);
    }
  }

  // An error surfaces where the training waits; here it is only not finished.
  static bool is_finished(c10d::Work& work) {
    try {
      return work.isCompleted();
    } catch (const std::exception&) {
      return false;
    }
  }

  base::StatusWriter status_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<WorkPtr> pending_;  // Protected by mutex_.
  bool stopping_ = false;        // Protected by mutex_.
  std::thread thread_;
};

using RecordedNccl = Recorded<c10d::ProcessGroupNCCL, PolledCompletion>;

}  // namespace
}  // namespace lockstep::comm

extern "C" {

LOCKSTEP_EXPORT void lockstep_cuda_make_nccl_backend(
    const lockstep::comm::NcclRequest& request,
    c10::intrusive_ptr<c10d::Backend>& backend) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = request.timeout;
  options->group_name = "nccl";
  backend = c10::make_intrusive<lockstep::comm::RecordedNccl>(
      request.status,
      c10::make_intrusive<c10d::PrefixStore>("nccl", request.store),
      request.place.rank, request.place.world_size, std::move(options));
}

LOCKSTEP_EXPORT const char* lockstep_cuda_last_nccl_error() {
  return ncclGetLastError(nullptr);
}

}  // extern "C"
