// The exchange between GPUs, as another thread can end it.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <thread>

namespace c10d {
class Backend;
}  // namespace c10d

namespace lockstep::comm {

// A kernel that waits for a rank which is gone would never end. Thread-safe.
class DeviceExchange {
 public:
  explicit DeviceExchange(c10::intrusive_ptr<c10d::Backend> backend);
  // Waits until an abort is complete.
  ~DeviceExchange();
  DeviceExchange(const DeviceExchange&) = delete;
  DeviceExchange& operator=(const DeviceExchange&) = delete;

  // Ends all collectives, also those that run on the GPU, and refuses later
  // ones. Returns at once: NCCL is done when no CUDA graph holds one of its
  // collectives any more.
  void abort();

  // True before the first collective is ended: what was read from the device
  // before this was false is the result of whole collectives.
  bool is_aborted() const { return is_aborted_; }

 private:
  c10::intrusive_ptr<c10d::Backend> backend_;
  std::atomic<bool> is_aborted_ = false;
  std::thread aborting_;
};

}  // namespace lockstep::comm
