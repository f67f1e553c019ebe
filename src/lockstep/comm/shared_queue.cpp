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
  while (running_.empty() && !tasks_.empty()) {
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
  if (running_.empty() && tasks_.size() == 1) tasks_.front()->begin();
}

bool SharedQueue::is_waiting(const SharedTask& task) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& waiting) {
    return waiting.get() == &task;
  });
}

bool SharedQueue::is_running(const SharedTask& task) const {
  return std::find(running_.begin(), running_.end(), &task) != running_.end();
}

bool SharedQueue::runs_here() const {
  return !running_.empty() && runner_ == std::this_thread::get_id();
}

void SharedQueue::wait(const SharedTask& task) {
  std::unique_lock lock(mutex_);
  // In a callback: nobody else runs the others until it returns.
  while (runs_here() && is_waiting(task)) {
    tasks_.front()->begin();
    run_first(lock, WaitStyle::kSpin);
  }
  if (runs_here()) return;
  for (;;) {
    if (!running_.empty()) {
      if (!is_running(task) && !is_waiting(task)) return;
      changed_.wait(lock);
    } else if (is_waiting(task)) {
      run_next(lock, WaitStyle::kSpin);
    } else {
      return;
    }
  }
}

void SharedQueue::run_first(std::unique_lock<std::mutex>& lock,
                            WaitStyle style) {
  const std::shared_ptr<SharedTask> task = std::move(tasks_.front());
  tasks_.pop_front();
  running_.push_back(task.get());
  runner_ = std::this_thread::get_id();
  lock.unlock();
  task->finish(style);
  lock.lock();
  running_.pop_back();
  changed_.notify_all();
}

void SharedQueue::run_next(std::unique_lock<std::mutex>& lock,
                           WaitStyle style) {
  run_first(lock, style);
  if (!tasks_.empty()) tasks_.front()->begin();
}

void SharedQueue::serve() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (running_.empty() && !tasks_.empty()) {
      run_next(lock, WaitStyle::kSleep);
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace lockstep::comm
