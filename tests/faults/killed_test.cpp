// Workers that die of a lack of memory: what the report shows of them.
#include <gtest/gtest.h>

#include "faults/launcher.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

// Without a page and in any language: the launcher asks the kernel.
TEST(Crash, AKilledRankIsShownWithItsPeakMemory) {
  const TempDir folder;
  const auto result =
      run(python_job({"--nproc=2"},
                     "import os, signal, time\n"
                     "if os.environ['RANK'] == '0': time.sleep(60)\n"
                     "room = b'x' * (200 << 20)\n"
                     "del room\n"
                     "os.kill(os.getpid(), signal.SIGKILL)\n"),
          with_temp(folder));
  EXPECT_EQ(result.exit_code, 137);
  const std::string cause = cause_in(result.err);
  const auto at = cause.find("  memory    : ");
  ASSERT_NE(at, std::string::npos) << cause;
  const std::string size =
      cause.substr(at + 14, cause.find(" MiB", at) - at - 14);
  EXPECT_GE(base::parse_number(size).value_or(0), 200) << cause;
  EXPECT_TRUE(contains(cause, " MiB resident at its peak\n")) << cause;
}

}  // namespace
}  // namespace lockstep::testing
