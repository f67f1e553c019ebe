#include "lockstep/launch/outer_error_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::TempDir;

launch::Failure killed() {
  launch::Failure failure;
  failure.rank = 1;
  failure.pid = 77;
  failure.exit_code = -9;
  return failure;
}

TEST(OuterErrorFile, HoldsTheWorkersFileWithItsExitCode) {
  const TempDir folder;
  const auto outer = folder.path() / "outer.json";
  launch::Failure root = killed();
  root.error_file = folder.write("error.json",
                                 R"({"message": {"message": "E: x", "extraInfo":
          {"py_callstack": "stack", "timestamp": "5"}}, "mine": 1})");
  root.error = base::read_error_file(root.error_file);
  launch::pass_on_root_cause({{"TORCHELASTIC_ERROR_FILE", outer.string()}},
                             root);
  EXPECT_EQ(json::parse(base::read_file(outer)), json::parse(R"(
      {"message": {"message": "E: x", "errorCode": -9, "extraInfo":
       {"py_callstack": "stack", "timestamp": "5"}}, "mine": 1})"));
}

TEST(OuterErrorFile, WithoutAFileOfTheWorkerItSaysHowTheWorkerEnded) {
  const TempDir folder;
  const auto outer = folder.path() / "outer.json";
  launch::pass_on_root_cause({{"TORCHELASTIC_ERROR_FILE", outer.string()}},
                             killed());
  const auto report = base::read_error_file(outer);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->message, "rank 1 (pid 77) ended with SIGKILL");
  EXPECT_GT(report->unix_seconds, 0);
  EXPECT_EQ(json::parse(base::read_file(outer))["message"]["errorCode"], -9);
}

TEST(OuterErrorFile, WithoutAVariableNothingIsWritten) {
  launch::pass_on_root_cause({}, killed());
  launch::pass_on_signal({{"TORCHELASTIC_ERROR_FILE", ""}}, 15);
  launch::pass_on_signal({{"TORCHELASTIC_ERROR_FILE", "/dev/null"}}, 15);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace lockstep
