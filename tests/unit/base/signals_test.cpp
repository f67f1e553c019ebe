#include "lockstep/base/signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lockstep {
namespace {

TEST(Signals, NamesAndNumbersMatch) {
  EXPECT_EQ(base::signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(base::signal_name(200), "signal 200");
  EXPECT_EQ(base::parse_signal("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(base::parse_signal("TERM"), SIGTERM);
  EXPECT_FALSE(base::parse_signal("SIGNONE"));
}

TEST(Signals, KillSuspectsTheMemoryKiller) {
  EXPECT_NE(base::signal_meaning(SIGKILL).find("out-of-memory"),
            std::string::npos);
  EXPECT_EQ(base::signal_meaning(SIGWINCH), "");
}

TEST(Signals, AnIllegalInstructionIsMostLikelyBf16OnACpu) {
  const std::string text = base::signal_meaning(SIGILL);
  const auto bf16 = text.find("--precision fp32");
  EXPECT_NE(bf16, std::string::npos) << text;
  EXPECT_NE(text.find("ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"), std::string::npos)
      << text;
  EXPECT_LT(bf16, text.find("another kind of processor")) << text;
}

TEST(Signals, ABusErrorIsATruncatedFileOrAFullDevShm) {
  const std::string text = base::signal_meaning(SIGBUS);
  EXPECT_NE(text.find("truncated"), std::string::npos) << text;
  EXPECT_NE(text.find("/dev/shm is full"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
