// torch.ops.lockstep from Python; the other side is python/operators_check.py.
#include <gtest/gtest.h>

#include "support/process.h"

namespace lockstep {
namespace {

TEST(Operators, PythonComputesTheSameWithThem) {
  const auto result = testing::run(
      {TORCH_PYTHON, PYTHON_SCRIPTS "/operators_check.py", LOCKSTEP_LIBRARY},
      {.timeout_seconds = 300});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* name : {"ok residual_norm", "ok linear_activation",
                           "ok qk_rms_rope", "ok attention"}) {
    EXPECT_NE(result.out.find(name), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace lockstep
