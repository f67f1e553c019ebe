#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/datasets/episodes/prepare_program.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(PrepareProgram, IsForDataSetsToConvert) {
  EXPECT_TRUE(episodes::is_for_prepare_program({"--from", "libero"}));
  EXPECT_TRUE(
      episodes::is_for_prepare_program({"--workers", "2", "--input=a"}));
  EXPECT_FALSE(
      episodes::is_for_prepare_program({"--config", "a.yaml", "--inputs"}));
  EXPECT_FALSE(episodes::is_for_prepare_program({}));
}

TEST(PrepareProgramDeathTest, IsFoundBesideThisProgramAndTakesItsPlace) {
  EXPECT_EXIT(episodes::become_prepare_program(
                  {"--input", "/nowhere", "--output", "a"}),
              ::testing::ExitedWithCode(2),
              "lockstep-prepare: --input '/nowhere' does not exist");
}

TEST(PrepareProgram, ThatIsMissingIsAnError) {
  setenv("LOCKSTEP_PREPARE", "/nowhere/lockstep-prepare", 1);
  EXPECT_THROW(episodes::become_prepare_program({}), ConfigError);
  unsetenv("LOCKSTEP_PREPARE");
}

}  // namespace
}  // namespace lockstep
