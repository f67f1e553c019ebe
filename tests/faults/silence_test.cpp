// Ranks that give no sign of life outside of collectives.
#include <gtest/gtest.h>

#include <csignal>

#include "faults/launcher.h"
#include "lockstep/launch/processes.h"

namespace lockstep::testing {
namespace {

TEST(Silence, ATrainingInWhichAllRanksAreStuckEndsWithTheirNames) {
  const TempDir folder;
  auto options = with_temp(folder);
  Process launcher(
      job({"--nproc=2", "--timeout=2", LOCKSTEP_STATUS_WORKER, "stuck"}),
      options);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 6) << result.err;
  for (const char* rank : {"rank 0", "rank 1"}) {
    EXPECT_TRUE(contains(result.err,
                         std::string("no sign of life from ") + rank + " (pid"))
        << result.err;
    EXPECT_TRUE(contains(result.err, std::string("stuck: ") + rank))
        << result.err;
  }
  EXPECT_TRUE(contains(result.err, "TimeoutError: no rank gave a sign of life"))
      << result.err;
  EXPECT_TRUE(contains(result.err, "does nothing; the job ends when no rank"))
      << result.err;
  EXPECT_TRUE(contains(result.err, "phase: loading data, step 4"));
  EXPECT_TRUE(contains(result.err, "process is sleeping")) << result.err;
  EXPECT_TRUE(contains(result.err, "The limit is 2.0 s"));
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 5).empty());
}

TEST(Silence, AProgramThatPromisesNothingIsOnlyWarnedAbout) {
  const auto result =
      run(job({"--nproc=2", "--timeout=1", LOCKSTEP_STATUS_WORKER, "quiet"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count(result.err, "no sign of life from rank 0"), 1) << result.err;
  EXPECT_EQ(count(result.err, "no sign of life from rank 1"), 1);
  EXPECT_TRUE(contains(result.err, "does nothing; the job goes on"));
}

TEST(Silence, StoppedRanksAreNamedAndLeftAlone) {
  Process launcher(
      job({"--nproc=2", "--timeout=1", LOCKSTEP_STATUS_WORKER, "suspend"}));
  ASSERT_TRUE(wait_for(
      [&] { return count(launcher.err(), "is stopped (SIGSTOP)") == 2; }, 60))
      << launcher.err();
  // Two more looks find them as they are.
  const double begin = now_seconds();
  wait_for([&] { return now_seconds() - begin > 11; }, 20);
  EXPECT_EQ(count(launcher.err(), "is stopped (SIGSTOP)"), 2);
  for (const launch::ProcessInfo& process :
       launch::find_descendants(launcher.pid())) {
    kill(process.pid, SIGCONT);
  }
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace lockstep::testing
