// The order in which a rank runs its collectives, and on which thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/comm/shared_channel.h"

namespace lockstep::comm {

// One collective that waits for its turn.
class SharedTask {
 public:
  virtual ~SharedTask() = default;
  // Shows the call to the other ranks; does not wait for them.
  virtual void begin() noexcept = 0;
  // Completes it. An error is kept for whoever asks.
  virtual void finish(WaitStyle style) noexcept = 0;
};

// Tasks run one at a time, in the order in which they were added: on the
// queue's thread, or on one that waits for them. Thread-safe.
//
// A task may wait for another one at the end of its own finish(), where the
// callbacks of its future are called: that one, and those before it, run
// within it.
class SharedQueue {
 public:
  SharedQueue() = default;
  ~SharedQueue() { end(); }
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;

  // Joins the thread, then runs what is left: whoever waits for it goes on.
  // Not from a task.
  void end();

  // Begins it if it is the only one, and returns; the thread finishes it.
  void add(std::shared_ptr<SharedTask> task);
  // Runs it here, after those before it.
  void run_now(std::shared_ptr<SharedTask> task);
  // Returns when the task has run; runs it here where nobody has begun it.
  void wait(const SharedTask& task);

 private:
  void push(std::shared_ptr<SharedTask> task);
  bool is_waiting(const SharedTask& task) const;
  bool is_running(const SharedTask& task) const;
  bool runs_here() const;
  void run_first(std::unique_lock<std::mutex>& lock, WaitStyle style);
  void run_next(std::unique_lock<std::mutex>& lock, WaitStyle style);
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<SharedTask>> tasks_;
  // The one that runs, and those within which it runs, all on one thread.
  std::vector<const SharedTask*> running_;
  std::thread::id runner_;
  bool is_ending_ = false;
  std::thread thread_;  // From the first task that nobody waits for.
};

}  // namespace lockstep::comm
