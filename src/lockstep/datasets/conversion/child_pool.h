// Work in child processes with limits: a library that crashes, hangs or takes
// all memory on a damaged file costs that file, not the program.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::conversion {

struct ChildLimits {
  // Address space that a child may add to its own; 0: as much as there is.
  size_t memory_bytes = 0;
  // A child that reports nothing for this long is killed.
  std::chrono::milliseconds silence = std::chrono::minutes(1);
};

// The child's end of the pipe to its parent.
class ChildChannel {
 public:
  explicit ChildChannel(int fd) : fd_(fd) {}

  void send(std::string_view message) const;
  // Shows that the work goes on.
  void alive() const;
  // The silence that follows has no limit: it is the disk's.
  void begin_waiting() const;

 private:
  int fd_;
};

// Why a child could not do its work; empty: it did.
using ChildFailure = std::string;

struct ChildTask {
  // Runs in the child. A FormatError is the task's failure; ConfigError and
  // IoError end the pool.
  std::function<void(const ChildChannel&)> work = {};
  // These run in the parent: for each message, and once at the end. They may
  // add further tasks.
  std::function<void(std::string_view message)> take = {};
  std::function<void(const ChildFailure& failure)> end = {};
};

// Runs tasks in child processes, some at a time. Children are forked: the
// process must have no other threads. They die with the parent, leave no core
// file and print nothing.
class ChildPool {
 public:
  ChildPool(int64_t most_children, const ChildLimits& limits);
  ~ChildPool();  // Kills those that still run.
  ChildPool(const ChildPool&) = delete;
  ChildPool& operator=(const ChildPool&) = delete;

  void add(ChildTask task);

  // Blocks until all tasks have ended. Throws what a task may not survive:
  // ConfigError, IoError, and IoError when no process can be started; the
  // others are killed then.
  void run();

 private:
  struct Child;

  void start_next();
  void wait_for_reports();
  void end_child(size_t index);

  int64_t most_children_;
  ChildLimits limits_;
  std::deque<ChildTask> waiting_;
  std::deque<std::unique_ptr<Child>> running_;
};

// Runs one function in a child, and returns the text that it gives. Throws
// FormatError with the child's failure, besides what run() throws.
std::string text_from_child(const std::function<std::string()>& work,
                            const ChildLimits& limits);

}  // namespace lockstep::conversion
