#include "lockstep/run/elastic_job.h"

#include <gtest/gtest.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/run/run_folder.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep::run {
namespace {

using testing::TempDir;

TEST(FirstStart, IsReadFromTheConfigThatItWasWrittenTo) {
  const FirstStart first{
      .num_processes = 4, .global_batch = 100, .micro_batch = 25};
  EXPECT_EQ(read_first_start("# job a\n# recipe: tiny\n" +
                             first_start_line(first) + "lr: 0.1\n"),
            first);
}

TEST(FirstStart, IsNotInOtherTexts) {
  for (const char* text :
       {"", "# job a\nlr: 0.1\n", "# first start: \n",
        "# first start: 4 processes\n",
        "# first start: x processes, 1 samples per step, 1 per micro-batch\n",
        "# first start: 0 processes, 1 samples per step, 1 per micro-batch\n",
        "# first start: 4 processes, 99999999999999999999 samples, 1 per\n"}) {
    EXPECT_EQ(read_first_start(text), std::nullopt) << text;
  }
}

TEST(RunFence, LetsTheNewestStartWrite) {
  const TempDir temp;
  const RunFence first(temp.path(), "job", 0);
  const RunFence second(temp.path(), "job", 1);
  first.claim();
  first.check();
  second.claim();
  second.check();
  try {
    first.check();
    FAIL() << "the old start may write";
  } catch (const PeerError& error) {
    EXPECT_TRUE(
        testing::contains(error.what(), "belongs to a newer start of this job"))
        << error.what();
  }
  EXPECT_THROW(first.claim(), PeerError);
  second.claim();
}

TEST(RunFence, DoesNotCountOtherJobs) {
  const TempDir temp;
  RunFence(temp.path(), "before", 7).claim();
  const RunFence fence(temp.path(), "job", 0);
  fence.check();
  fence.claim();
  fence.check();
}

TEST(RunFence, IsThereInElasticJobsOnly) {
  const TempDir temp;
  EXPECT_FALSE(RunFence::from_environment(temp.path(), {}));
  EXPECT_FALSE(
      RunFence::from_environment(temp.path(), {{"LOCKSTEP_JOB", "a"}}));
  const auto fence = RunFence::from_environment(
      temp.path(), {{"LOCKSTEP_JOB", "a"}, {"LOCKSTEP_GENERATION", "3"}});
  ASSERT_TRUE(fence);
  EXPECT_FALSE(fence->is_first_start());
}

}  // namespace
}  // namespace lockstep::run
