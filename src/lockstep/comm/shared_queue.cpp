#include "lockstep/comm/shared_queue.h"

#include <algorithm>

#include "lockstep/base/signal_mask.h"

namespace lockstep::comm {

void SharedQueue::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  while (running_ == nullptr && !tasks_.empty()) {
    run_next(lock, WaitStyle::kSleep);
  }
}

void SharedQueue::add(std::shared_ptr<SharedTask> task) {
  {
    const std::lock_guard lock(mutex_);
    push(std::move(task));
    if (!thread_.joinable()) {
      const base::AllSignalsBlocked blocked;
      thread_ = std::thread([this] { serve(); });
    }
  }
  changed_.notify_all();
}

void SharedQueue::run_now(std::shared_ptr<SharedTask> task) {
  const SharedTask& added = *task;
  {
    const std::lock_guard lock(mutex_);
    push(std::move(task));
  }
  wait(added);
}

// The others need not wait until the thread has woken up.
void SharedQueue::push(std::shared_ptr<SharedTask> task) {
  tasks_.push_back(std::move(task));
  if (running_ == nullptr && tasks_.size() == 1) tasks_.front()->begin();
}

bool SharedQueue::is_waiting(const SharedTask& task) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& waiting) {
    return waiting.get() == &task;
  });
}

void SharedQueue::wait(const SharedTask& task) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (running_ != nullptr) {
      if (running_ != &task && !is_waiting(task)) return;
      changed_.wait(lock);
    } else if (is_waiting(task)) {
      run_next(lock, WaitStyle::kSpin);
    } else {
      return;
    }
  }
}

void SharedQueue::run_next(std::unique_lock<std::mutex>& lock,
                           WaitStyle style) {
  const std::shared_ptr<SharedTask> task = std::move(tasks_.front());
  tasks_.pop_front();
  running_ = task.get();
  lock.unlock();
  task->finish(style);
  lock.lock();
  running_ = nullptr;
  if (!tasks_.empty()) tasks_.front()->begin();
  changed_.notify_all();
}

void SharedQueue::serve() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (running_ == nullptr && !tasks_.empty()) {
      run_next(lock, WaitStyle::kSleep);
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace lockstep::comm
