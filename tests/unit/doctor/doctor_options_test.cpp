#include "lockstep/doctor/doctor_options.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

doctor::DoctorOptions parse(const Words& words) {
  return doctor::parse_doctor_options(words, {});
}

TEST(DoctorOptions, WithoutARecipeTheLaunchOptionsAreTheJobs) {
  const auto options = parse({"--json", "--nproc", "4", "--master-port=29501"});
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.launch.nproc, "4");
  EXPECT_EQ(options.launch.master_port, 29501);
  EXPECT_TRUE(options.recipe.empty());
}

TEST(DoctorOptions, BehindTrainStandsTheCommandOfATraining) {
  const auto options = parse({"--limit", "9", "train", "tiny", "--nproc", "2",
                              "--epochs", "3", "--json_file", "x"});
  EXPECT_EQ(options.limit_seconds, 9);
  EXPECT_FALSE(options.json);
  EXPECT_EQ(options.launch.nproc, "2");
  EXPECT_EQ(options.recipe,
            (Words{"tiny", "--epochs", "3", "--json_file", "x"}));
}

TEST(DoctorOptions, WrongWordsAreRefused) {
  for (const Words& words : std::vector<Words>{{"tiny"},
                                               {"train"},
                                               {"--limit"},
                                               {"--limit", "0"},
                                               {"--limit=x"},
                                               {"--nproc", "x"}}) {
    EXPECT_THROW(parse(words), ConfigError) << words[0];
  }
}

}  // namespace
}  // namespace lockstep
