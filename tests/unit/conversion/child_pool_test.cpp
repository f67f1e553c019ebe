#include "lockstep/datasets/conversion/child_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

class Children : public ::testing::Test {
 protected:
  // Runs the work in a child of a pool; how it ended.
  conversion::ChildFailure failure_of(
      const std::function<void(const conversion::ChildChannel&)>& work) {
    conversion::ChildFailure failure = "did not end";
    conversion::ChildPool pool(1, limits_);
    pool.add(
        {.work = work,
         .take = [&](std::string_view text) { messages_.emplace_back(text); },
         .end = [&](const conversion::ChildFailure& why) { failure = why; }});
    pool.run();
    return failure;
  }

  conversion::ChildLimits limits_;
  std::vector<std::string> messages_;
};

[[noreturn]] void hang() {
  while (true) pause();
}

TEST_F(Children, MessagesArriveInOrder) {
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(failure_of([&](const conversion::ChildChannel& parent) {
              parent.send("a");
              parent.alive();
              parent.send("");
              parent.send(large);
            }),
            "");
  EXPECT_EQ(messages_, (std::vector<std::string>{"a", "", large}));
}

TEST_F(Children, ACrashIsAFailureOfItsTask) {
  EXPECT_EQ(failure_of([](const conversion::ChildChannel& parent) {
              parent.send("before");
              signal(SIGSEGV, SIG_DFL);
              raise(SIGSEGV);
            }),
            "reading it crashed (SIGSEGV); the file is damaged");
  EXPECT_EQ(messages_, std::vector<std::string>{"before"});
  EXPECT_EQ(failure_of([](const conversion::ChildChannel&) { _exit(7); }),
            "reading it ended the process with exit code 7; the file is "
            "damaged");
}

TEST_F(Children, ASilentOneIsStopped) {
  limits_.silence = milliseconds(200);
  EXPECT_EQ(failure_of([](const conversion::ChildChannel&) { hang(); }),
            "reading it made no progress for 0.2 s, and was stopped");
  // A loop that uses the processor, too.
  EXPECT_NE(failure_of([](const conversion::ChildChannel& parent) {
              parent.send("begins");
              for (volatile bool goes_on = true; goes_on;) {
              }
            }).find("made no progress"),
            std::string::npos);
}

TEST_F(Children, OneThatWaitsForTheDiskIsNotStopped) {
  limits_.silence = milliseconds(2000);
  EXPECT_EQ(failure_of([](const conversion::ChildChannel& parent) {
              parent.begin_waiting();
              sleep(3);
            }),
            "");
}

TEST_F(Children, AnErrorOfTheFileIsTheFailure) {
  EXPECT_EQ(failure_of([](const conversion::ChildChannel&) {
              throw FormatError("cut");
            }),
            "cut");
  EXPECT_EQ(failure_of([](const conversion::ChildChannel&) {
              throw std::bad_alloc();
            }),
            "reading it takes more memory than there is");
}

TEST_F(Children, OtherErrorsEndThePool) {
  EXPECT_THROW(failure_of([](const conversion::ChildChannel&) {
                 throw ConfigError("no HDF5");
               }),
               ConfigError);
  EXPECT_THROW(failure_of([](const conversion::ChildChannel&) {
                 throw IoError("disk full");
               }),
               IoError);
}

TEST_F(Children, LeaveNoCoreFile) {
  EXPECT_EQ(failure_of([](const conversion::ChildChannel& parent) {
              rlimit limit{};
              getrlimit(RLIMIT_CORE, &limit);
              parent.send(std::to_string(limit.rlim_cur));
            }),
            "");
  EXPECT_EQ(messages_, std::vector<std::string>{"0"});
}

TEST_F(Children, EveryTaskRunsOnceAndMayAddOthers) {
  constexpr int kRounds = 40;
  std::vector<int> order;
  conversion::ChildPool pool(2, limits_);
  for (int task = 0; task < kRounds; ++task) {
    pool.add(
        {.work =
             [](const conversion::ChildChannel& parent) { parent.send("a"); },
         .take = [&, task](std::string_view) { order.push_back(task); },
         .end =
             [&, task](const conversion::ChildFailure& failure) {
               EXPECT_EQ(failure, "");
               if (task == 0) {
                 pool.add({.work = [](const conversion::ChildChannel&) {},
                           .take = {},
                           .end =
                               [&](const conversion::ChildFailure&) {
                                 order.push_back(kRounds);
                               }});
               }
             }});
  }
  pool.run();
  std::sort(order.begin(), order.end());
  ASSERT_EQ(order.size(), kRounds + 1U);
  for (int i = 0; i <= kRounds; ++i) EXPECT_EQ(order[size_t(i)], i);
}

TEST_F(Children, GiveATextBack) {
  EXPECT_EQ(
      conversion::text_from_child([] { return "made by a child"; }, limits_),
      "made by a child");
  EXPECT_THROW(
      conversion::text_from_child(
          []() -> std::string { throw FormatError("damaged"); }, limits_),
      FormatError);
}

}  // namespace
}  // namespace lockstep
