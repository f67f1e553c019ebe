#include "lockstep/run/recovery.h"

#include <gtest/gtest.h>

#include "lockstep/base/slot_file.h"
#include "unit/engine/line_task.h"

namespace lockstep::run {
namespace {

constexpr int kOwn = 0;  // The slot of what a rank alone knows.

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

}  // namespace
}  // namespace lockstep::run
