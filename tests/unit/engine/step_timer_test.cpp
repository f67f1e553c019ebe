#include "lockstep/engine/step_timer.h"

#include <gtest/gtest.h>

#include "lockstep/base/clock.h"

namespace lockstep {
namespace {

constexpr double kPart = 2e-3;  // Seconds.

void work() {
  const int64_t end = base::monotonic_ns() + static_cast<int64_t>(kPart * 1e9);
  while (base::monotonic_ns() < end) {
  }
}

TEST(StepTimer, TimesEveryPartOfAStepOnACpu) {
  engine::StepTimer timer(c10::Device(c10::DeviceType::CPU), {});
  for (int step = 0; step < 2; ++step) {
    timer.begin_step();
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
      work();
      timer.data_end();
      work();
      timer.forward_end();
      work();
      timer.backward_end();
    }
    work();
    timer.update_end();
    timer.end_step();
    work();
  }
  const track::StepTimes times = timer.take();
  EXPECT_EQ(times.steps, 2);
  EXPECT_GE(times.data, 6 * kPart);
  EXPECT_GE(times.forward, 6 * kPart);
  EXPECT_GE(times.backward, 6 * kPart);
  EXPECT_GE(times.optimizer, 2 * kPart);
  EXPECT_GE(times.other, kPart);  // Between the two steps.
  EXPECT_EQ(times.exchange, 0);   // There are no collectives.
}

TEST(StepTimer, ATakeBeginsAnew) {
  engine::StepTimer timer(c10::Device(c10::DeviceType::CPU), {});
  timer.begin_step();
  timer.end_step();
  EXPECT_EQ(timer.take().steps, 1);
  const track::StepTimes times = timer.take();
  EXPECT_EQ(times.steps, 0);
  EXPECT_EQ(times.optimizer, 0);
}

}  // namespace
}  // namespace lockstep
