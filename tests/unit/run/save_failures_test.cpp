#include "lockstep/run/save_failures.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "unit/engine/flags.h"

namespace lockstep {
namespace {

using testing::contains;

run::FailedSave failed(bool has_older) {
  return {.path = "run/checkpoint_step_4.pt",
          .error = "No space left on device",
          .has_older = has_older};
}

TEST(SaveFailures, SayWhatIsLeftAndNeverThatOlderOnesStayWhenThereAreNone) {
  run::SaveFailures failures;
  const std::string none = failures.note_failed(failed(false));
  EXPECT_TRUE(contains(none,
                       "run/checkpoint_step_4.pt was not written: No "
                       "space left on device; the run has no checkpoint"))
      << none;
  EXPECT_FALSE(contains(none, "older")) << none;
  EXPECT_TRUE(contains(run::SaveFailures().note_failed(failed(true)),
                       "the older checkpoints stay"));
  failures.note_saved(6);
  EXPECT_TRUE(contains(failures.note_failed(failed(true)),
                       "the newest checkpoint is that of step 6"));
}

TEST(SaveFailures, ThreeInARowAreSaidLoudly) {
  run::SaveFailures failures;
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(contains(failures.note_failed(failed(false)), "SAVES"));
  }
  const std::string loud = failures.note_failed(failed(false));
  EXPECT_TRUE(contains(loud, "THE LAST 3 SAVES HAVE FAILED")) << loud;
  EXPECT_TRUE(contains(loud, "all progress is lost")) << loud;
  EXPECT_TRUE(contains(loud, "--save_required")) << loud;
  EXPECT_TRUE(contains(failures.note_failed(failed(false)), "LAST 4 SAVES"));
}

TEST(SaveFailures, ThreeInARowEndARunThatRequiresSaves) {
  run::SaveFailures failures;
  for (int i = 0; i < 2; ++i) {
    failures.note_failed(failed(true));
    EXPECT_NO_THROW(failures.require_saves("run"));
  }
  failures.note_saved(2);
  for (int i = 0; i < 2; ++i) failures.note_failed(failed(true));
  EXPECT_EQ(failures.in_a_row(), 2);
  EXPECT_NO_THROW(failures.require_saves("run"));
  failures.note_failed(failed(true));
  // By the reason the launcher knows a full disk.
  EXPECT_EQ(failures.last_error(), "No space left on device");
  try {
    failures.require_saves("run");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_TRUE(contains(error.what(), "No space left on device"));
  }
}

}  // namespace
}  // namespace lockstep
