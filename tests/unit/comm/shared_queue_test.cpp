#include "lockstep/comm/shared_queue.h"

#include <gtest/gtest.h>

#include <atomic>
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

TEST(SharedQueue, AWaitingThreadSpinsAndTheQueuesOwnSleeps) {
  Log log;
  SharedQueue queue;
  const auto here = std::make_shared<NotedTask>(log, 0);
  queue.run_now(here);
  EXPECT_EQ(here->style(), WaitStyle::kSpin);
}

}  // namespace
}  // namespace lockstep::comm
