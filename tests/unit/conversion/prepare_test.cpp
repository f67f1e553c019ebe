#include "lockstep/datasets/conversion/prepare.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

class Prepare : public ::testing::Test {
 protected:
  std::string error(const std::vector<std::string>& arguments) const {
    try {
      conversion::prepare_atlas(arguments);
    } catch (const ConfigError& problem) {
      return problem.what();
    }
    return "";
  }
  std::string error_with(std::vector<std::string> more) const {
    more.insert(more.end(), {"--input", input_, "--output", output_});
    return error(more);
  }
  void make(const std::string& file) {
    const std::filesystem::path path = folder_.path() / "in" / file;
    std::filesystem::create_directories(path.parent_path());
    folder_.write("in/" + file, "");
  }

  testing::TempDir folder_;
  std::string input_ = folder_.path() / "in";
  std::string output_ = folder_.path() / "out";
};

TEST_F(Prepare, HelpNamesEveryFlag) {
  const std::string text = conversion::prepare_atlas({"--help"}).text;
  for (const char* flag :
       {"--from", "--input", "--output", "--split", "--val_fraction",
        "--cameras", "flip", "--tolerance_s", "--workers", "--timeout",
        "overwrite"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag;
  }
}

TEST_F(Prepare, MissingFlagsAreNamed) {
  EXPECT_EQ(error({}),
            "--input is missing: lockstep prepare atlas --input PATH --output "
            "DIR");
  make("a.hdf5");
  EXPECT_EQ(error({"--input", input_}),
            "--output is missing: lockstep prepare atlas --input PATH --output "
            "DIR");
  EXPECT_NE(error_with({"word"}).find("'word' belongs to no flag"),
            std::string::npos);
}

TEST_F(Prepare, AnInputOfNoKnownKindIsRefused) {
  EXPECT_EQ(error_with({}), "--input '" + input_ + "' does not exist");
  make("notes.txt");
  EXPECT_EQ(error_with({}),
            "--input '" + input_ +
                "' holds neither .hdf5 files, nor meta/info.json, nor "
                "train/episode_*/actions.parquet; name its kind by --from");
  EXPECT_EQ(error_with({"--from", "libero"}),
            "--input '" + input_ +
                "' holds no .hdf5 file; it is a file of LIBERO, or a folder of "
                "such files");
  EXPECT_EQ(error_with({"--from", "lerobot"}),
            "--input '" + input_ +
                "' holds no meta/info.json; it is the folder of a LeRobot data "
                "set");
  EXPECT_EQ(error_with({"--from", "parquet"}),
            "--input '" + input_ +
                "' holds no train/episode_000/actions.parquet or the like");
}

TEST_F(Prepare, FlagsThatDoNotFitAreRefused) {
  make("train/episode_000/actions.parquet");
  EXPECT_EQ(error_with({"--split", "a"}),
            "--split does not go with --from parquet");
  EXPECT_EQ(error_with({"--flip"}), "--flip does not go with --from parquet");
  make("meta/info.json");
  EXPECT_EQ(error_with({"--flip"}), "--flip does not go with --from lerobot");
  EXPECT_EQ(error_with({"--cameras", "a,b,c"}),
            "--cameras takes one or two names");
  EXPECT_EQ(error_with({"--split", "../a"}),
            "--split '../a' is not a folder name");
  EXPECT_NE(error_with({"--val_fraction", "1.5"}), "");
  EXPECT_FALSE(std::filesystem::exists(output_));
}

}  // namespace
}  // namespace lockstep
