// The collectives over shared memory when ranks die, stop or disagree, and on
// calls of every kind and size.
//
// LOCKSTEP_EXCHANGE_TURNS and LOCKSTEP_EXCHANGE_SECONDS make the tests longer;
// bench/exchange_soak.py sets them.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "distributed/random_call.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "support/forked_ranks.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using comm::Element;
using comm::Reduction;
using comm::SharedCall;
using comm::SharedKind;
using testing::expect_in;
using testing::ForkedEnd;
using testing::ForkedRank;
using testing::RandomCall;
using testing::run_forked;

double number_from(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atof(text) : otherwise;
}

SharedCall all_reduce_of(std::vector<float>& values) {
  return {.kind = SharedKind::kAllReduce,
          .element = Element::kFloat32,
          .reduction = Reduction::kSum,
          .bytes = values.size() * sizeof(float),
          .output = reinterpret_cast<std::byte*>(values.data())};
}

// One size for each way: beside the header, by pieces, and many pieces.
constexpr std::array<size_t, 3> kCounts = {100, 100000, 1500000};

// Runs collectives until one fails.
std::string reduce_for_ever(ForkedRank& self) {
  std::vector<std::vector<float>> tensors;
  for (const size_t count : kCounts) tensors.emplace_back(count, 1.0F);
  // A bucket, reduced where it lies.
  std::byte* bucket = self.arena->allocate(1 << 20);
  std::memset(bucket, 0, 1 << 20);
  for (;;) {
    for (auto& tensor : tensors) self.run(all_reduce_of(tensor));
    self.run({.kind = SharedKind::kAllReduce,
              .element = Element::kFloat32,
              .bytes = 1 << 20,
              .output = bucket});
  }
}

void expect_all_name(const std::vector<ForkedEnd>& ends, int victim,
                     const std::string& cause) {
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    if (static_cast<int>(rank) == victim) continue;
    EXPECT_EQ(ends[rank].signal, 0) << "rank " << rank;
    EXPECT_EQ(ends[rank].report, cause) << "rank " << rank;
  }
}

TEST(SharedMemory, AKilledRankIsNamedByAllOthersInEveryPhase) {
  const int num_turns =
      static_cast<int>(number_from("LOCKSTEP_EXCHANGE_TURNS", 25));
  std::mt19937 random(1);
  for (int turn = 0; turn < num_turns; ++turn) {
    const int size = 2 + static_cast<int>(random() % 3);
    const int victim = static_cast<int>(random() % size);
    const auto pause = std::chrono::microseconds(random() % 5000);
    const auto ends = run_forked({.size = size,
                                  .disturb =
                                      [&](const std::vector<pid_t>& pids) {
                                        std::this_thread::sleep_for(pause);
                                        kill(pids[victim], SIGKILL);
                                      }},
                                 reduce_for_ever);
    EXPECT_EQ(ends[victim].signal, SIGKILL);
    expect_all_name(ends, victim,
                    "PeerError: rank " + std::to_string(victim) +
                        " ended or crashed; look for its first error");
  }
}

TEST(SharedMemory, AKilledRankIsNamedWithinMilliseconds) {
  // The shortest of some turns: a busy machine may be slow, but not always.
  double shortest = 1e9;
  for (int turn = 0; turn < 40 && shortest > 0.02; ++turn) {
    double seconds = -1;
    const auto ends = run_forked({.size = 2}, [](ForkedRank& self) {
      std::vector<float> values(10);
      self.run(all_reduce_of(values));
      if (self.rank == 1) std::raise(SIGKILL);
      const int64_t begin = base::monotonic_ns();
      try {
        self.run(all_reduce_of(values));
      } catch (const PeerError&) {
        return "named after " + std::to_string(base::seconds_between(
                                    begin, base::monotonic_ns()));
      }
      return std::string("no error");
    });
    ASSERT_EQ(std::sscanf(ends[0].report.c_str(), "named after %lf", &seconds),
              1)
        << ends[0].report;
    shortest = std::min(shortest, seconds);
  }
  EXPECT_LT(shortest, 0.02);
}

// The limit is that of a whole collective, which takes milliseconds: long
// enough that a rank that lives arrives within it on any machine.
TEST(SharedMemory, AStoppedRankIsNamedByTheLimitInEveryPhase) {
  const int num_turns =
      static_cast<int>(number_from("LOCKSTEP_EXCHANGE_TURNS", 3));
  std::mt19937 random(2);
  for (int turn = 0; turn < num_turns; ++turn) {
    const int victim = turn % 3;
    const auto pause = std::chrono::microseconds(random() % 5000);
    const auto ends = run_forked({.size = 3,
                                  .timeout_seconds = 5,
                                  .disturb =
                                      [&](const std::vector<pid_t>& pids) {
                                        std::this_thread::sleep_for(pause);
                                        kill(pids[victim], SIGSTOP);
                                      }},
                                 reduce_for_ever);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      expect_in(ends[rank].report, "TimeoutError: rank(s) " +
                                       std::to_string(victim) +
                                       " did not arrive within 5.0 s");
      expect_in(ends[rank].report, "--timeout SECONDS");
    }
    const int first = victim == 0 ? 1 : 0;
    expect_all_name(ends, victim, ends[first].report);
  }
}

TEST(SharedMemory, ARankThatShowedItsCallAndDiedIsNamed) {
  const auto ends = run_forked({.size = 3}, [](ForkedRank& self) {
    std::vector<float> values(kCounts[1]);
    const SharedCall call = all_reduce_of(values);
    if (self.rank == 2) {
      self.collectives.begin(call);
      std::raise(SIGKILL);
    }
    self.run(call);
    return std::string("no error");
  });
  expect_all_name(ends, 2,
                  "PeerError: rank 2 ended or crashed; look for its first "
                  "error");
}

TEST(SharedMemory, ARankThatHasDoneItsPartMayLeave) {
  const auto ends = run_forked({.size = 3}, [](ForkedRank& self) {
    std::vector<float> values(100, 1.0F);
    if (self.rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    self.run(all_reduce_of(values));
    return std::to_string(values[99]);
  });
  for (const ForkedEnd& end : ends) EXPECT_EQ(end.report, "3.000000");
}

TEST(SharedMemory, OtherCallsOnOtherRanksAreNamedAtOnce) {
  const auto ends = run_forked({.size = 3}, [](ForkedRank& self) {
    std::vector<float> values(1024);
    SharedCall call = all_reduce_of(values);
    if (self.rank == 1) call.kind = SharedKind::kBroadcast;
    std::string first;
    try {
      self.run(call);
    } catch (const std::exception& error) {
      first = error.what();
    }
    // The group stays of no use, for the same reason.
    try {
      self.run(all_reduce_of(values));
    } catch (const std::exception& error) {
      if (error.what() == first) return first;
    }
    return std::string("another error or none after: " + first);
  });
  for (const ForkedEnd& end : ends) {
    EXPECT_EQ(end.report,
              "rank 1 called broadcast of 4.0 KiB from rank 0 while rank 0 "
              "called all_reduce(sum) of 4.0 KiB float32; every rank must call "
              "the same collectives in the same order");
  }
}

TEST(SharedMemory, OtherSizesAndTypesOnOtherRanksAreNamed) {
  for (const int kind : {0, 1, 2, 3}) {
    const auto ends = run_forked({.size = 2}, [&](ForkedRank& self) {
      std::vector<float> values(kCounts[1]);
      SharedCall call = all_reduce_of(values);
      if (self.rank == 1 && kind == 0) call.bytes /= 2;
      if (self.rank == 1 && kind == 1) call.element = Element::kInt32;
      if (self.rank == 1 && kind == 2) call.reduction = Reduction::kMax;
      if (kind == 3) call.kind = SharedKind::kBroadcast;
      if (kind == 3) call.root = self.rank;
      self.run(call);
      return std::string("no error");
    });
    for (const ForkedEnd& end : ends) {
      expect_in(end.report, "PeerError: rank 1 called ");
      expect_in(end.report, "while rank 0 called ");
    }
  }
}

TEST(SharedMemory, CallsOfEveryKindTypeAndSizeGiveTheRightValues) {
  const double seconds = number_from("LOCKSTEP_EXCHANGE_SECONDS", 8);
  for (const int size : {2, 3, 5, 8}) {
    const auto ends = run_forked({.size = size}, [&](ForkedRank& self) {
      const int64_t begin = base::monotonic_ns();
      uint32_t num_calls = 0;
      float goes_on = 1;
      while (goes_on > 0) {
        for (int call = 0; call < 20; ++call) {
          const std::string problem =
              RandomCall(++num_calls * 10 + self.size, self).run(self);
          if (!problem.empty()) return problem;
        }
        // All ranks stop after the same call.
        const double now = base::seconds_between(begin, base::monotonic_ns());
        std::vector<float> left = {now < seconds / 4 ? 1.0F : 0.0F};
        SharedCall call = all_reduce_of(left);
        call.reduction = Reduction::kMin;
        self.run(call);
        goes_on = left[0];
      }
      return std::string("all right");
    });
    for (const ForkedEnd& end : ends) EXPECT_EQ(end.report, "all right");
  }
}

TEST(SharedMemory, TheHeapTakesAndReturnsMemory) {
  const auto ends = run_forked({.size = 2}, [](ForkedRank& self) {
    constexpr size_t kBytes = 10 << 20;
    for (int turn = 0; turn < 3; ++turn) {
      std::byte* first = self.arena->allocate(kBytes);
      std::byte* second = self.arena->allocate(kBytes);
      if (first == nullptr || second != first + kBytes) return "no memory";
      std::memset(first, 1, 2 * kBytes);
      self.arena->free(first);
      self.arena->free(second);
      // The next block lies there again, without what was in it.
      std::byte* again = self.arena->allocate(2 * kBytes);
      if (again != first || again[5] != std::byte{0}) return "not returned";
      self.arena->free(again);
    }
    // More than the machine has is an answer, not a signal.
    if (self.arena->allocate(size_t{1} << 60) != nullptr) return "too much";
    return "good";
  });
  for (const ForkedEnd& end : ends) EXPECT_EQ(end.report, "good");
}

// Descriptors of this process: what each refers to.
std::vector<std::string> open_files() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code is_closed;  // The one that lists the folder.
    names.push_back(std::filesystem::read_symlink(entry, is_closed));
  }
  return names;
}

size_t count_containing(const std::vector<std::string>& names,
                        const std::string& part) {
  return static_cast<size_t>(
      std::count_if(names.begin(), names.end(), [&](const std::string& name) {
        return name.find(part) != std::string::npos;
      }));
}

bool has_mapping() {
  return base::read_file("/proc/self/maps").find("lockstep-exchange") !=
         std::string::npos;
}

TEST(SharedMemory, ARankThatLeavesClosesItsMemoryAndSockets) {
  const auto ends = run_forked({.size = 3}, [](ForkedRank& self) {
    const auto before = open_files();
    const auto memory = count_containing(before, "lockstep-exchange");
    if (memory != 3 || !has_mapping()) {
      return "attached to " + std::to_string(memory);
    }
    {
      ForkedRank leaving = std::move(self);
      std::vector<float> values(kCounts[1]);
      leaving.run(all_reduce_of(values));
    }
    if (has_mapping()) return std::string("a mapping is left");
    const auto after = open_files();
    if (count_containing(after, "lockstep-exchange") != 0) {
      return std::string("memory is left");
    }
    // A region per rank, and a socket to every other rank.
    if (after.size() != before.size() - 3 - 2) {
      return std::to_string(before.size()) + " descriptors before, " +
             std::to_string(after.size()) + " after";
    }
    return std::string("good");
  });
  for (const ForkedEnd& end : ends) EXPECT_EQ(end.report, "good");
}

TEST(SharedMemory, AKilledRankLeavesNothingBehind) {
  const auto open = open_files().size();
  run_forked(
      {.size = 3,
       .disturb =
           [](const std::vector<pid_t>& pids) { kill(pids[0], SIGKILL); }},
      reduce_for_ever);
  // Other programs have files there, too.
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_EQ(count_containing(names, "lockstep"), 0U);
  EXPECT_EQ(open_files().size(), open);
  EXPECT_FALSE(has_mapping());
}

}  // namespace
}  // namespace lockstep
