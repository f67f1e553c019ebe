#include "lockstep/launch/silence.h"

#include <gtest/gtest.h>

#include "support/messages.h"

namespace lockstep {
namespace {

using testing::contains;

constexpr double kLimit = 100;
constexpr double kLook = 5;  // seconds between looks

enum class Work { kNone, kCpu, kReading };

// Ranks that were silent from the start, looked at every 5 s.
class Scene {
 public:
  explicit Scene(int num_ranks) {
    for (int i = 0; i < num_ranks; ++i) {
      launch::RankSnapshot& rank = ranks_.emplace_back();
      rank.rank = i;
      rank.pid = 100 + i;
      rank.is_alive = true;
      rank.state = 'S';
      rank.is_paced = true;
      rank.status =
          base::RankStatus{.phase = base::Phase::kLoadingData, .step = 7};
    }
  }

  launch::RankSnapshot& operator[](size_t rank) { return ranks_[rank]; }
  void set_work(Work work) { work_ = work; }

  // Every look until this much time has passed.
  void pass(double seconds) {
    for (double end = now_ + seconds; now_ < end;) {
      now_ += kLook;
      for (launch::RankSnapshot& rank : ranks_) {
        if (rank.status) rank.status->silent_seconds += kLook;
      }
      if (work_ == Work::kCpu) activity_.cpu_seconds += kLook;
      if (work_ == Work::kReading) activity_.io_bytes += 1000;
      launch::SilenceFinding finding = watch_.look(ranks_);
      for (auto& line : finding.warnings) warnings.push_back(std::move(line));
      if (finding.failure && !failure) failure = std::move(finding.failure);
    }
  }

  std::vector<std::string> warnings;
  std::optional<launch::Failure> failure;

 private:
  double now_ = 1000;
  Work work_ = Work::kNone;
  launch::ProcessActivity activity_;
  std::vector<launch::RankSnapshot> ranks_;
  launch::SilenceWatch watch_{
      kLimit,
      {.now_ns = [this] { return static_cast<int64_t>(now_ * 1e9); },
       .activity = [this](pid_t) { return activity_; },
       .waiting = [](pid_t) { return std::string("sleeping in pipe_read"); }}};
};

TEST(Silence, AProcessThatReplacesAnotherIsWarnedAboutToo) {
  Scene scene(1);
  scene.pass(75);
  EXPECT_EQ(scene.warnings.size(), 1u);
  scene[0].pid = 107;
  scene[0].status->silent_seconds = 0;
  scene.pass(75);
  ASSERT_EQ(scene.warnings.size(), 2u);
  EXPECT_TRUE(contains(scene.warnings[1], "rank 0 (pid 107)"));
}

TEST(Silence, StuckRanksAreWarnedAboutOnceAndEndedAfterTheLimit) {
  Scene scene(2);
  scene.pass(55);
  EXPECT_TRUE(scene.warnings.empty());
  scene.pass(20);
  ASSERT_EQ(scene.warnings.size(), 2u);
  EXPECT_TRUE(
      contains(scene.warnings[1], "no sign of life from rank 1 (pid 101) for"));
  EXPECT_TRUE(contains(scene.warnings[1],
                       "phase loading data, step 7; its process is sleeping in "
                       "pipe_read and does nothing; the job ends when"))
      << scene.warnings[1];
  EXPECT_FALSE(scene.failure);
  scene.pass(60);
  EXPECT_EQ(scene.warnings.size(), 2u);
  ASSERT_TRUE(scene.failure);
  EXPECT_EQ(scene.failure->exit_code, 6);
  EXPECT_TRUE(contains(scene.failure->error->message,
                       "longer than the limit of 100.0 s"));
}

TEST(Silence, OneRankThatWorksKeepsTheJob) {
  for (const Work work : {Work::kCpu, Work::kReading}) {
    Scene scene(2);
    scene.set_work(work);
    scene.pass(90);
    EXPECT_TRUE(scene.warnings.empty());
    scene.pass(500);
    EXPECT_FALSE(scene.failure);
    // A step of a trainer that takes longer than the limit is worth a word.
    ASSERT_EQ(scene.warnings.size(), 2u);
    EXPECT_TRUE(contains(scene.warnings[0], "and works; the job goes on"));
  }
}

TEST(Silence, AUsersOwnLoopIsNeverEndedAndMayComputeWithoutAWord) {
  Scene scene(2);
  scene[0].is_paced = scene[1].is_paced = false;
  scene.set_work(Work::kCpu);
  scene.pass(1000);
  EXPECT_TRUE(scene.warnings.empty());
  scene.set_work(Work::kNone);
  scene.pass(1000);
  EXPECT_EQ(scene.warnings.size(), 2u);
  EXPECT_TRUE(contains(scene.warnings[0], "does nothing; the job goes on"));
  EXPECT_FALSE(scene.failure);
}

TEST(Silence, StoppedRanksAreNamedAndNeverEnded) {
  for (const char state : {'T', 't'}) {
    Scene scene(2);
    scene[0].state = scene[1].state = state;
    scene.pass(1000);
    ASSERT_EQ(scene.warnings.size(), 2u);
    EXPECT_TRUE(contains(scene.warnings[0],
                         state == 't' ? "is stopped by a debugger"
                                      : "resume it with kill -CONT 100"));
    EXPECT_FALSE(scene.failure);
  }
}

TEST(Silence, ARankInACollectiveHasThatCollectivesLimit) {
  Scene scene(2);
  scene[0].status->collectives_started = 1;
  scene.pass(1000);
  ASSERT_EQ(scene.warnings.size(), 1u);
  EXPECT_TRUE(contains(scene.warnings[0], "rank 1"));
  EXPECT_FALSE(scene.failure);
}

TEST(Silence, OutputIsASignOfLife) {
  Scene scene(1);
  scene[0].quiet_seconds = 1;
  scene.pass(1000);
  EXPECT_TRUE(scene.warnings.empty());
  EXPECT_FALSE(scene.failure);
}

TEST(Silence, ForeignAndFinishedProgramsAreNotJudged) {
  Scene scene(2);
  scene[0].status.reset();
  scene[1].status->phase = base::Phase::kDone;
  scene.pass(1000);
  EXPECT_TRUE(scene.warnings.empty());
  EXPECT_FALSE(scene.failure);
}

TEST(Silence, TheLimitIsTheRanksOwn) {
  Scene scene(1);
  scene[0].status->timeout_seconds = 10;
  scene.pass(30);
  ASSERT_TRUE(scene.failure);
}

TEST(Silence, TheVerdictNamesEveryRank) {
  Scene scene(2);
  scene[0].waiting = "sleeping in pipe_read";
  scene[1].waiting = "waiting for a disk or device (state D) in nfs_wait";
  scene[1].status->silent_seconds = 130;
  const std::string text =
      launch::silence_verdict(std::vector{scene[0], scene[1]}, 60);
  EXPECT_TRUE(contains(text, "stuck: rank 0 (pid 100)"));
  EXPECT_TRUE(contains(
      text,
      "stuck: rank 1 (pid 101); last collective: no collective yet, phase: "
      "loading data, step 7, silent for 2 min 10 s, process is waiting for a "
      "disk or device (state D) in nfs_wait"))
      << text;
  EXPECT_TRUE(contains(text, "The limit is 60.0 s"));
}

}  // namespace
}  // namespace lockstep
