#include "lockstep/base/environment.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(Environment, EmptyCountsAsUnset) {
  const base::Environment environment = {{"A", ""}, {"B", "x"}};
  EXPECT_FALSE(base::find(environment, "A"));
  EXPECT_FALSE(base::find(environment, "C"));
  EXPECT_EQ(base::find(environment, "B"), "x");
}

TEST(Environment, BadIntegerNamesTheVariable) {
  const base::Environment environment = {{"RANK", "two"}, {"SIZE", "4"}};
  EXPECT_EQ(base::find_integer(environment, "SIZE"), 4);
  try {
    base::find_integer(environment, "RANK");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("RANK='two'"), std::string::npos);
  }
}

TEST(Environment, CopyHoldsTheProcessVariables) {
  EXPECT_TRUE(base::find(base::process_environment(), "PATH"));
}

TEST(CollectiveTimeout, TorchVariableBeatsNcclVariable) {
  EXPECT_EQ(base::collective_timeout_seconds({}), 600);
  EXPECT_EQ(base::collective_timeout_seconds({{"NCCL_TIMEOUT", "40"}}), 40);
  EXPECT_EQ(base::collective_timeout_seconds(
                {{"NCCL_TIMEOUT", "40"}, {"TORCH_DISTRIBUTED_TIMEOUT", "2.5"}}),
            2.5);
}

TEST(CollectiveTimeout, RefusesWhatIsNotAPositiveNumber) {
  for (const char* text : {"0", "-1", "soon"}) {
    EXPECT_THROW(base::collective_timeout_seconds({{"NCCL_TIMEOUT", text}}),
                 ConfigError);
  }
}

}  // namespace
}  // namespace lockstep
