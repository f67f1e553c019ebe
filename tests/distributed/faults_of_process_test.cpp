// Crashes and failed allocations. Sanitizers handle both themselves; their
// builds leave this file out.
#include <gtest/gtest.h>

#include "distributed/faults.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using testing::expect_in;
using testing::expect_verdict;
using testing::train;

TEST(Faults, ACrashIsShownWithStackStepAndPhase) {
  const auto result = train("crash", 1);
  EXPECT_EQ(result.exit_code, 128 + 11) << result.err;
  const auto cause = result.err.substr(result.err.find("Root Cause"));
  expect_in(cause, "rank      : 1");
  expect_in(cause, "position  : step 5, ");
  expect_in(cause, "stack     : at address 0x10, in thread faults_worker");
  expect_in(cause, "#0 write_to_nowhere()+");
  expect_in(cause, "lockstep::run_program(");
}

TEST(Faults, ACrashAndMissingMemoryHaveTheirVerdicts) {
  expect_verdict(train("crash", 1), "signal", "died by SIGSEGV");
  expect_verdict(train("tensor", 1), "out of host memory (OOM killer)",
                 "can't allocate memory");
}

TEST(Faults, MemoryOfTheMachineThatIsMissingIsNamedWithARemedy) {
  for (const char* fault : {"memory", "tensor"}) {
    const auto result = train(fault, 2);
    EXPECT_EQ(result.exit_code, 7) << result.err;
    const auto cause = result.err.substr(result.err.find("Root Cause"));
    expect_in(cause, "DeviceError: ");
    expect_in(cause, "the machine's memory");
    expect_in(cause, "use a smaller batch per process");
  }
}

}  // namespace
}  // namespace lockstep
