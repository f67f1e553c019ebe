#include "lockstep/run/recovery.h"

#include <gtest/gtest.h>

#include "lockstep/base/slot_file.h"
#include "unit/engine/line_task.h"

namespace lockstep::run {
namespace {

constexpr int kOwn = 0;  // The slot of what a rank alone knows.

TEST(RecoveryRoles, TheStateIsOfTheStepOfTheReplicas) {
  // Rank 0 was given step 68 by rank 1 and lost rank 2 before it trained.
  const auto given = choose_roles({{68, 67}, {68, 68}, {kNoStep, 68}});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->source, 0);
  EXPECT_EQ(given->teller, 1);
  // Who gave it died, and left the state in its slots.
  const auto left = choose_roles({{68, 67}, {kNoStep, 68}, {67, 67}});
  ASSERT_TRUE(left);
  EXPECT_EQ(left->teller, 1);
}

TEST(RecoveryRoles, Rank0TellsWhatIsDoneWhereItKnows) {
  const auto roles = choose_roles({{kNoStep, 7}, {6, 6}, {7, 7}});
  ASSERT_TRUE(roles);
  EXPECT_EQ(roles->source, 2);
  EXPECT_EQ(roles->teller, 0);
}

TEST(RecoveryRoles, WithoutReplicasThereIsNothingToTell) {
  EXPECT_FALSE(choose_roles({{kNoStep, 7}, {kNoStep, kNoStep}}));
  EXPECT_FALSE(choose_roles({{7, 6}, {7, 6}}));
}

TEST(Recovery, NeverWritesOverTheOnlyVersionOfWhatARankAloneKnows) {
  base::SlotFile slots;
  const base::Environment environment = {
      {base::kSlotFileVariable, std::to_string(slots.fd())}};
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, environment);
  testing::LineTask task;
  engine::Learner learner(task, world, {});
  auto recovery = Recovery::from_environment(environment, world);
  ASSERT_TRUE(recovery);
  const engine::TrainState state{.step = 4};
  recovery->begin(learner, state);
  EXPECT_TRUE(slots.read(kOwn, 4));
  // As a process before this one left it.
  slots.write(kOwn, 4, "known of step 4");
  recovery->begin(learner, state);
  EXPECT_EQ(slots.read(kOwn, 4), "known of step 4");
}

TEST(Recovery, IsLeftOutWhereItIsOnlyTheDefaultAndCannotBe) {
  const base::Environment asked = {{base::kSlotFileVariable, "7"}};
  base::Environment by_default = asked;
  by_default[base::kRecoveryVariable] = base::kRecoveryByDefault;
  TrainConfig config;
  EXPECT_EQ(recovery_environment(by_default, config), by_default);
  config.optimization.shard_optimizer = true;
  EXPECT_EQ(
      recovery_environment(by_default, config).count(base::kSlotFileVariable),
      0U);
  EXPECT_EQ(recovery_environment(asked, config), asked);
}

}  // namespace
}  // namespace lockstep::run
