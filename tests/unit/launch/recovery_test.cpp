#include "lockstep/launch/recovery.h"

#include <gtest/gtest.h>

#include <csignal>
#include <span>

namespace lockstep::launch {
namespace {

class RecoveryDecision : public ::testing::Test {
 protected:
  RecoveryDecision() {
    for (int rank = 0; rank < 3; ++rank) {
      Worker& worker = workers_.emplace_back();
      worker.rank = rank;
      worker.pid = 100 + rank;
      page(worker).set_ready();
    }
    set_steps(4);
  }

  static base::Environment environment(const Worker& worker) {
    return {{"LOCKSTEP_STATUS_FD", std::to_string(worker.status.fd())}};
  }
  static base::RecoveryWriter page(const Worker& worker) {
    return base::RecoveryWriter::from_environment(environment(worker));
  }
  void set_steps(int64_t steps) {
    base::TrainingStatusWriter::from_environment(environment(workers_[0]))
        .start(steps, std::nullopt);
  }
  void end(int rank, int exit_code) {
    workers_[static_cast<size_t>(rank)].end = WorkerEnd{.exit_code = exit_code};
  }

  std::vector<Worker> workers_;
  RecoveryPolicy policy_;
};

TEST_F(RecoveryDecision, ADeathBySignalIsReplaced) {
  end(2, -SIGKILL);
  EXPECT_TRUE(policy_.allows(workers_));
  EXPECT_EQ(policy_.generation(), 1);
  EXPECT_EQ(recovery_text(workers_[2], 1),
            "rank 2 (pid 102) died by SIGKILL and is started again; the other "
            "ranks keep their state (recovery 1)");
}

TEST_F(RecoveryDecision, WhatAProgramReportsItselfIsNot) {
  end(2, 1);
  EXPECT_FALSE(policy_.allows(workers_));
  end(2, 0);
  EXPECT_FALSE(policy_.allows(workers_));
  end(2, -SIGKILL);
  end(1, 6);
  EXPECT_FALSE(policy_.allows(workers_));
}

TEST_F(RecoveryDecision, SomebodyMustHoldTheState) {
  end(0, -SIGKILL);
  end(1, -SIGSEGV);
  EXPECT_TRUE(policy_.allows(workers_));
  end(2, -SIGKILL);
  EXPECT_FALSE(policy_.allows(workers_));
}

TEST_F(RecoveryDecision, DeathsWithoutAStepBetweenThemEnd) {
  end(2, -SIGSEGV);
  int allowed = 0;
  while (allowed < 100 && policy_.allows(workers_)) ++allowed;
  EXPECT_EQ(allowed, 10);
  RecoveryPolicy other;
  for (int64_t step = 5; step < 105; ++step) {
    set_steps(step);
    EXPECT_TRUE(other.allows(workers_));
  }
}

TEST_F(RecoveryDecision, NobodyIsReplacedOnceARankHasDoneItsWork) {
  EXPECT_TRUE(page(workers_[0]).end(0));
  end(2, -SIGKILL);
  EXPECT_FALSE(policy_.allows(workers_));
}

TEST_F(RecoveryDecision, ARankEndsBeforeOneIsReplacedOrNotAtAll) {
  EXPECT_TRUE(workers_[0].recovery.announce(1));
  EXPECT_FALSE(page(workers_[0]).end(0));
  EXPECT_TRUE(page(workers_[0]).end(1));
  EXPECT_TRUE(page(workers_[0]).end(1));
  EXPECT_TRUE(workers_[0].recovery.is_over());
  EXPECT_FALSE(workers_[0].recovery.announce(2));
  EXPECT_EQ(page(workers_[0]).generation(), 1);
}

TEST_F(RecoveryDecision, TheStateIsHeldByWhoLivesAndHasIt) {
  EXPECT_TRUE(held_state(workers_).is_held);
  end(0, -SIGKILL);
  end(1, -SIGKILL);
  EXPECT_TRUE(held_state(workers_).is_held);
  end(2, -SIGKILL);
  EXPECT_FALSE(held_state(workers_).is_held);
  // Other nodes may hold it.
  EXPECT_TRUE(held_state(workers_).can_go_on);
  Worker started;
  started.pid = 200;
  EXPECT_FALSE(held_state(std::span(&started, 1)).is_held);
  EXPECT_TRUE(held_state(std::span(&started, 1)).can_go_on);
}

TEST_F(RecoveryDecision, ANodeGoesOnUnlessARankOfItHasEndedByItself) {
  EXPECT_TRUE(held_state(workers_).can_go_on);
  for (const int exit_code : {0, 1, 6}) {
    end(1, exit_code);
    EXPECT_FALSE(held_state(workers_).can_go_on) << exit_code;
  }
  end(1, -SIGSEGV);
  EXPECT_TRUE(held_state(workers_).can_go_on);
  EXPECT_TRUE(page(workers_[2]).end(0));
  EXPECT_FALSE(held_state(workers_).can_go_on);
}

TEST_F(RecoveryDecision, TheStepsOfANodeAreThoseOfTheRankThatIsFurthest) {
  EXPECT_EQ(held_state(workers_).num_steps, 4);
  base::TrainingStatusWriter::from_environment(environment(workers_[2]))
      .start(7, std::nullopt);
  EXPECT_EQ(held_state(workers_).num_steps, 7);
  // Also of one that has died.
  end(2, -SIGKILL);
  EXPECT_EQ(held_state(workers_).num_steps, 7);
  EXPECT_EQ(held_state(std::span(workers_).subspan(1, 1)).num_steps, -1);
}

TEST_F(RecoveryDecision, TheLivingAreTold) {
  EXPECT_TRUE(workers_[1].recovery.announce(3));
  EXPECT_EQ(page(workers_[1]).generation(), 3);
  EXPECT_EQ(page(workers_[0]).generation(), 0);
}

TEST(RecoveryLimit, TenDeathsWithoutAStepAreTheMost) {
  RecoveryLimit limit;
  for (int turn = 0; turn < 10; ++turn) EXPECT_TRUE(limit.allows(4)) << turn;
  EXPECT_FALSE(limit.allows(4));
}

TEST(RecoveryLimit, AStepBetweenThemAllowsTenMore) {
  RecoveryLimit limit;
  for (int64_t step = 0; step < 50; ++step) {
    for (int turn = 0; turn < 10; ++turn) EXPECT_TRUE(limit.allows(step));
  }
  EXPECT_FALSE(limit.allows(49));
}

TEST(RecoveryLimit, DeathsBeforeTheFirstStepAreLimitedToo) {
  RecoveryLimit limit;
  int allowed = 0;
  while (allowed < 100 && limit.allows(-1)) ++allowed;
  EXPECT_LE(allowed, 10);
}

}  // namespace
}  // namespace lockstep::launch
