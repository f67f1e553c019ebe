#include "lockstep/base/training_status.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/base/status.h"
#include "lockstep/base/status_view.h"
#include "unit/base/status_environment.h"

namespace lockstep {
namespace {

using testing::environment_of;

constexpr double kTick = 1e-6;

// Until the activity has taken measurable time.
void wait_for_the_clock(const base::TrainingStatusWriter& writer) {
  while (writer.activity_seconds() < kTick) {
  }
}

TEST(TrainingStatus, IsAbsentUntilATrainingStarts) {
  const base::StatusReader page;
  const base::TrainingStatusReader reader(page.fd());
  EXPECT_FALSE(reader.read());
  auto writer =
      base::TrainingStatusWriter::from_environment(environment_of(page));
  EXPECT_FALSE(reader.read());
  writer.start(4, std::nullopt);
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.read()->num_steps, 4);
  EXPECT_EQ(reader.read()->saved_step, -1);
}

TEST(TrainingStatus, LeavesTheRestOfTheStatusPageAlone) {
  const base::StatusReader page;
  auto status = base::StatusWriter::from_environment(environment_of(page));
  status.set_step(7);
  auto writer =
      base::TrainingStatusWriter::from_environment(environment_of(page));
  writer.start(9, 3);
  writer.begin(base::Activity::kStep);
  ASSERT_TRUE(page.read());
  EXPECT_EQ(page.read()->step, 7);
  EXPECT_FALSE(status.job_is_lost());
}

TEST(TrainingStatus, KnowsTheUsualDurationAfterTwentyActivities) {
  const base::StatusReader page;
  const base::TrainingStatusReader reader(page.fd());
  auto writer =
      base::TrainingStatusWriter::from_environment(environment_of(page));
  writer.start(0, std::nullopt);
  for (int i = 0; i < 20; ++i) {
    writer.begin(base::Activity::kValidation);
    EXPECT_FALSE(reader.read()->activity_p99_seconds);
  }
  writer.begin(base::Activity::kValidation);
  EXPECT_TRUE(reader.read()->activity_p99_seconds);
  EXPECT_GT(reader.read()->activity_begin_ns, 0);
  writer.begin(base::Activity::kStep);
  EXPECT_FALSE(reader.read()->activity_p99_seconds);
}

TEST(TrainingStatus, TellsTheActivityAndHowLongItTakes) {
  const base::StatusReader page;
  const base::TrainingStatusReader reader(page.fd());
  auto writer =
      base::TrainingStatusWriter::from_environment(environment_of(page));
  writer.start(0, std::nullopt);
  writer.begin(base::Activity::kStep);
  EXPECT_EQ(reader.read()->typical_seconds, 0);
  wait_for_the_clock(writer);
  writer.set_num_steps(1);
  writer.begin(base::Activity::kStep);
  const auto training = reader.read();
  EXPECT_EQ(training->activity, base::Activity::kStep);
  EXPECT_EQ(training->num_steps, 1);
  EXPECT_GE(training->typical_seconds, kTick);
  EXPECT_LE(training->activity_seconds, training->typical_seconds + 60);
}

TEST(TrainingStatus, ACheckpointTakesUntilItsFileIsComplete) {
  const base::StatusReader page;
  const base::TrainingStatusReader reader(page.fd());
  auto writer =
      base::TrainingStatusWriter::from_environment(environment_of(page));
  writer.start(8, 4);
  writer.begin(base::Activity::kSaving);
  writer.start_save();
  writer.begin(base::Activity::kStep);
  EXPECT_EQ(reader.read()->saving_seconds, 0);
  EXPECT_EQ(reader.read()->saved_step, 4);
  wait_for_the_clock(writer);
  writer.note_saved(8);
  EXPECT_GE(reader.read()->saving_seconds, kTick);
  EXPECT_EQ(reader.read()->saved_step, 8);
}

TEST(TrainingStatus, WorksWithoutLauncher) {
  base::TrainingStatusWriter writer =
      base::TrainingStatusWriter::from_environment({});
  writer.start(1, 1);
  writer.begin(base::Activity::kStep);
  EXPECT_GE(writer.activity_seconds(), 0);
}

TEST(TrainingStatus, TellsWhereTheTimeGoes) {
  const base::StatusReader page;
  const base::TrainingStatusReader reader(page.fd());
  auto writer =
      base::TrainingStatusWriter::from_environment(environment_of(page));
  writer.start(0, std::nullopt);
  EXPECT_EQ(reader.read()->times.num_steps, 0);
  writer.add_times({.num_steps = 8,
                    .data = 0.25,
                    .compute = 1.5,
                    .exchange = 0.5,
                    .other = 2});
  const base::StepSeconds times = reader.read()->times;
  EXPECT_EQ(times.num_steps, 8);
  EXPECT_DOUBLE_EQ(times.data, 0.25);
  EXPECT_DOUBLE_EQ(times.compute, 1.5);
  EXPECT_DOUBLE_EQ(times.exchange, 0.5);
  EXPECT_DOUBLE_EQ(times.other, 2);
  writer.add_times({.num_steps = 2, .compute = 0.5});  // Earlier ones fade out.
  EXPECT_EQ(reader.read()->times.num_steps, 8);
  EXPECT_DOUBLE_EQ(reader.read()->times.compute, 1.625);
}

TEST(StatusView, ShowsThePagesThatAProcessHasOpenByRank) {
  const base::StatusReader second;
  const base::StatusReader first;
  auto two = base::StatusWriter::from_environment(environment_of(second));
  two.set_place(1, 2);
  two.set_step(4);
  auto one = base::StatusWriter::from_environment(environment_of(first));
  one.set_place(0, 2);
  one.set_step(5);
  base::TrainingStatusWriter::from_environment(environment_of(first))
      .start(6, 2);
  const base::StatusReader foreign;  // No worker has attached.
  const auto pages = base::read_status_pages(getpid());
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_EQ(pages[0].rank.step, 5);
  EXPECT_EQ(pages[0].training->saved_step, 2);
  EXPECT_EQ(pages[1].rank.step, 4);
  EXPECT_FALSE(pages[1].training);
}

TEST(StatusView, HasNoPagesOfAProcessThatDoesNotExist) {
  EXPECT_TRUE(base::read_status_pages(0).empty());
  EXPECT_TRUE(base::read_status_pages(1 << 30).empty());
}

}  // namespace
}  // namespace lockstep
