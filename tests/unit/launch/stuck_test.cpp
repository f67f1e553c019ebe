#include "lockstep/launch/stuck.h"

#include <gtest/gtest.h>

#include "support/messages.h"

namespace lockstep {
namespace {

using testing::contains;

constexpr double kStuckLook = launch::StuckWatch::kLookSeconds;

// Ranks in phase forward that have started three collectives, looked at every
// 200 ms.
class StuckScene {
 public:
  explicit StuckScene(int num_ranks, std::optional<double> p99 = 0.0) {
    for (int i = 0; i < num_ranks; ++i) {
      launch::WatchedRank& rank = ranks_.emplace_back();
      rank.rank = i;
      rank.pid = 100 + i;
      rank.status = {.world_size = num_ranks,
                     .phase = base::Phase::kForward,
                     .collective = base::Collective::kAllReduce,
                     .step = 7,
                     .collectives_started = 3,
                     .collectives_finished = 3,
                     .collective_bytes = 1024};
      rank.stage = "phase " + base::phase_name(rank.status.phase);
      rank.p99_seconds = p99;
      live(i);
      states_[rank.pid] = 'S';
      threads_[rank.pid] = {{rank.pid, {}}};
    }
  }

  launch::WatchedRank& operator[](size_t rank) { return ranks_[rank]; }
  void live(int rank) { ranks_[static_cast<size_t>(rank)].sign_ns = now_ns(); }
  void start_collective(int rank) {
    ++ranks_[static_cast<size_t>(rank)].status.collectives_started;
    live(rank);
  }
  void set_state(int rank, char state) { states_[100 + rank] = state; }
  // From now on its thread waits for a CPU this part of the time, and runs in
  // the rest.
  void starve(int rank, double part) { starved_[100 + rank] = part; }

  // Every look until this much time has passed; returns the texts.
  std::vector<std::string> pass(double seconds, double look = kStuckLook) {
    std::vector<std::string> texts;
    for (double end = now_ + seconds - 1e-6; now_ < end;) {
      now_ += look;
      for (const auto& [pid, part] : starved_) {
        launch::ThreadTime& thread = threads_[pid][pid];
        thread.delay_ns += static_cast<int64_t>(look * part * 1e9);
        thread.run_ns += static_cast<int64_t>(look * (1 - part) * 1e9);
        ++thread.num_slices;
      }
      for (launch::StuckNote& note : watch_.look(ranks_)) {
        texts.push_back(std::move(note.text));
        culprits.push_back(note.culprit ? note.culprit->rank : -1);
      }
    }
    return texts;
  }

  std::vector<int> culprits;  // of all notes; -1: none

 private:
  int64_t now_ns() const { return static_cast<int64_t>(now_ * 1e9); }

  double now_ = 1000;
  std::vector<launch::WatchedRank> ranks_;
  std::map<pid_t, char> states_;
  std::map<pid_t, launch::ThreadTimes> threads_;
  std::map<pid_t, double> starved_;
  launch::StuckWatch watch_{
      {.now_ns = [this] { return now_ns(); },
       .state = [this](pid_t pid) { return states_[pid]; },
       .threads = [this](pid_t pid) { return threads_[pid]; },
       .waiting = [](pid_t) { return std::string("sleeping in pipe_read"); }}};
};

TEST(StuckWatch, NamesTheRankThatTheOthersWaitForAfterOneSecond) {
  StuckScene scene(3);
  scene.start_collective(0);
  scene.start_collective(2);
  EXPECT_TRUE(scene.pass(1.0).empty());
  const auto texts = scene.pass(0.4);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(
      texts[0],
      "rank 1 (pid 101) is stuck for 1.2 s in phase forward, step 7 (limit "
      "1.0 s); its process is sleeping in pipe_read; ranks 0, 2 wait for it in "
      "all_reduce #4 (1.0 KiB)"))
      << texts[0];
  EXPECT_EQ(scene.culprits, std::vector<int>{1});
  EXPECT_TRUE(scene.pass(100).empty());
}

TEST(StuckWatch, TheLimitFollowsThePhase) {
  StuckScene scene(2, 0.8);
  scene.start_collective(0);
  EXPECT_TRUE(scene.pass(7.8).empty());
  EXPECT_EQ(scene.pass(0.6).size(), 1u);
}

TEST(StuckWatch, SaysNothingBeforeThePhaseIsKnownOrInOtherPhases) {
  StuckScene unknown(2, std::nullopt);
  EXPECT_TRUE(unknown.pass(1000).empty());
  StuckScene between(2);
  for (const base::Phase phase :
       {base::Phase::kStarting, base::Phase::kConnecting, base::Phase::kClosing,
        base::Phase::kDone, base::Phase::kBetweenSteps}) {
    between[0].status.phase = between[1].status.phase = phase;
    EXPECT_TRUE(between.pass(100).empty());
  }
}

TEST(StuckWatch, ARankThatGoesOnIsSaidOnceAndSuspectedLaterOnly) {
  StuckScene scene(2);
  scene.start_collective(0);
  EXPECT_EQ(scene.pass(3).size(), 1u);
  scene.live(1);
  const auto texts = scene.pass(0.2);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(texts[0], "rank 1 (pid 101) goes on after 3.0 s"));
  // A silence of that length is known; twice as long is not.
  EXPECT_TRUE(scene.pass(5.6).empty());
  EXPECT_EQ(scene.pass(1).size(), 1u);
}

TEST(StuckWatch, AProcessThatReplacesAStuckOneIsNotTheStuckOne) {
  StuckScene scene(2);
  scene.start_collective(0);
  EXPECT_EQ(scene.pass(3).size(), 1u);
  scene[1].pid = 107;
  scene.live(1);
  EXPECT_TRUE(scene.pass(1.0).empty());
  // Its silences are not known yet.
  const auto texts = scene.pass(0.6);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(texts[0], "rank 1 (pid 107) is stuck")) << texts[0];
}

TEST(StuckWatch, AStoppedRankIsNamedEveryTimeAlsoInsideACollective) {
  StuckScene scene(2);
  scene.start_collective(0);
  scene.start_collective(1);
  for (int i = 0; i < 2; ++i) {
    scene.set_state(1, 'T');
    const auto texts = scene.pass(1.4);
    ASSERT_EQ(texts.size(), 1u);
    EXPECT_TRUE(contains(texts[0],
                         "resume it with kill -CONT 101; rank 0 "
                         "waits for it in all_reduce #4"))
        << texts[0];
    scene.set_state(1, 'S');
    scene.live(0);
    scene.live(1);
    EXPECT_EQ(scene.pass(0.2).size(), 1u);
  }
}

TEST(StuckWatch, RanksThatAllWaitAreNotAccused) {
  StuckScene scene(2);
  scene.start_collective(0);
  scene.start_collective(1);
  const auto texts = scene.pass(3);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(texts[0], "all 2 ranks wait in all_reduce #4 (1.0 KiB)"))
      << texts[0];
  EXPECT_TRUE(contains(texts[0], "suspect the network or a GPU"));
}

TEST(StuckWatch, DifferentCollectivesAreADifferenceOfPrograms) {
  StuckScene scene(2);
  scene.start_collective(0);
  scene.start_collective(1);
  scene[1].status.collective_bytes = 8;
  const auto texts = scene.pass(3);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(texts[0], "not in the same one")) << texts[0];
}

TEST(StuckWatch, RanksThatWaitForAnotherNodeAreNotAccused) {
  StuckScene scene(2);
  scene.start_collective(0);
  scene.start_collective(1);
  scene[0].status.world_size = scene[1].status.world_size = 4;
  EXPECT_TRUE(scene.pass(100).empty());
}

TEST(StuckWatch, OnlyTheRankFurthestBehindIsAccused) {
  StuckScene scene(3);
  scene.start_collective(0);
  scene.start_collective(2);
  // Silent outside of a collective, but ahead of rank 1.
  ++scene[2].status.collectives_finished;
  scene.pass(3);
  EXPECT_EQ(scene.culprits, std::vector<int>{1});
}

TEST(StuckWatch, WaitingForACpuIsNotSilence) {
  StuckScene scene(2);
  scene.start_collective(0);
  scene.starve(1, 0.8);
  EXPECT_TRUE(scene.pass(3).empty());
  const auto texts = scene.pass(3);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(texts[0], "its process computes or spins")) << texts[0];
}

TEST(StuckWatch, ALauncherThatCouldNotLookDoesNotJudge) {
  StuckScene scene(2);
  scene.start_collective(0);
  EXPECT_TRUE(scene.pass(10, 10).empty());
  EXPECT_EQ(scene.pass(1).size(), 1u);
}

}  // namespace
}  // namespace lockstep
