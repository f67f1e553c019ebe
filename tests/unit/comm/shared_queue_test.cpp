#include "lockstep/comm/shared_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <vector>

namespace lockstep::comm {
namespace {

// Tasks note when they begin and finish; one runs at a time, so the list needs
// no lock.
struct Log {
  std::vector<int> begun;
  std::vector<int> finished;
  std::atomic<int> num_finished = 0;
};

class NotedTask final : public SharedTask {
 public:
  NotedTask(Log& log, int number) : log_(log), number_(number) {}

  void begin() noexcept override { log_.begun.push_back(number_); }
  void finish(WaitStyle style) noexcept override {
    style_ = style;
    log_.finished.push_back(number_);
    ++log_.num_finished;
  }
  WaitStyle style() const { return style_; }

 private:
  Log& log_;
  int number_;
  WaitStyle style_ = WaitStyle::kSleep;
};

std::vector<int> numbers_below(int end) {
  std::vector<int> numbers;
  for (int number = 0; number < end; ++number) numbers.push_back(number);
  return numbers;
}

TEST(SharedQueue, RunsTasksInTheirOrderOnWhateverThread) {
  Log log;
  SharedQueue queue;
  std::vector<std::shared_ptr<NotedTask>> tasks;
  constexpr int kCount = 300;
  for (int number = 0; number < kCount; ++number) {
    tasks.push_back(std::make_shared<NotedTask>(log, number));
    if (number % 3 == 0) {
      queue.run_now(tasks.back());
      EXPECT_EQ(log.num_finished, number + 1);
    } else {
      queue.add(tasks.back());
    }
  }
  for (const auto& task : tasks) queue.wait(*task);
  EXPECT_EQ(log.begun, numbers_below(kCount));
  EXPECT_EQ(log.finished, numbers_below(kCount));
}

TEST(SharedQueue, SeveralThreadsMayWaitForOneTask) {
  Log log;
  SharedQueue queue;
  for (int round = 0; round < 50; ++round) {
    const auto task = std::make_shared<NotedTask>(log, round);
    queue.add(task);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        queue.wait(*task);
        EXPECT_GE(log.num_finished, round + 1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(log.finished, numbers_below(50));
}

TEST(SharedQueue, EndsWithNothingLeft) {
  Log log;
  constexpr int kCount = 100;
  {
    SharedQueue queue;
    for (int number = 0; number < kCount; ++number) {
      queue.add(std::make_shared<NotedTask>(log, number));
    }
  }
  EXPECT_EQ(log.finished, numbers_below(kCount));
}

// A task that calls a function when it has finished, as a future calls its
// callbacks.
class CallingTask final : public SharedTask {
 public:
  CallingTask(Log& log, int number, std::function<void()> callback)
      : log_(log), number_(number), callback_(std::move(callback)) {}

  void begin() noexcept override { log_.begun.push_back(number_); }
  void finish(WaitStyle) noexcept override {
    log_.finished.push_back(number_);
    ++log_.num_finished;
    callback_();
  }

 private:
  Log& log_;
  int number_;
  std::function<void()> callback_;
};

TEST(SharedQueue, ATaskMayWaitForOthersInItsCallback) {
  for (const bool waits_here : {false, true}) {
    Log log;
    SharedQueue queue;
    std::vector<std::shared_ptr<SharedTask>> tasks(4);
    std::promise<void> is_filled;
    auto filled = is_filled.get_future().share();
    tasks[0] = std::make_shared<CallingTask>(log, 0, [&, filled] {
      filled.wait();
      queue.wait(*tasks[0]);    // This one itself.
      queue.run_now(tasks[2]);  // After task 1, which is queued.
      EXPECT_EQ(log.finished, numbers_below(4));
    });
    tasks[1] = std::make_shared<NotedTask>(log, 1);
    // Within a callback within a callback.
    tasks[2] = std::make_shared<CallingTask>(log, 2, [&] {
      queue.add(tasks[3]);
      queue.wait(*tasks[3]);
      EXPECT_EQ(log.finished, numbers_below(4));
    });
    tasks[3] = std::make_shared<NotedTask>(log, 3);
    queue.add(tasks[0]);
    queue.add(tasks[1]);
    is_filled.set_value();
    if (waits_here) queue.wait(*tasks[0]);
    queue.wait(*tasks[1]);
    const auto last = std::make_shared<NotedTask>(log, 4);
    queue.run_now(last);
    EXPECT_EQ(log.begun, numbers_below(5));
    EXPECT_EQ(log.finished, numbers_below(5));
  }
}

TEST(SharedQueue, AWaitingThreadSpinsAndTheQueuesOwnSleeps) {
  Log log;
  SharedQueue queue;
  const auto here = std::make_shared<NotedTask>(log, 0);
  queue.run_now(here);
  EXPECT_EQ(here->style(), WaitStyle::kSpin);
}

}  // namespace
}  // namespace lockstep::comm
