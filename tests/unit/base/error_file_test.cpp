#include "lockstep/base/error_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

TEST(ErrorFile, RoundTripKeepsEveryField) {
  const TempDir folder;
  const auto path = folder.path() / "error.json";
  base::write_error_file(path, {.message = "TimeoutError: \"quoted\"\nline 2",
                                .callstack = "Traceback",
                                .unix_seconds = 1'700'000'000});
  const auto report = base::read_error_file(path);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->message, "TimeoutError: \"quoted\"\nline 2");
  EXPECT_EQ(report->callstack, "Traceback");
  EXPECT_EQ(report->unix_seconds, 1'700'000'000);
}

TEST(ErrorFile, APipeOrAFloodInItsPlaceIsNoReport) {
  const TempDir folder;
  const auto pipe = folder.path() / "pipe.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(base::read_error_file(pipe));
  const std::string flood(8 << 20, 'x');
  EXPECT_FALSE(base::read_error_file(
      folder.write("error.json", "{\"message\": \"" + flood + "\"}")));
}

TEST(ErrorFile, ReadsWhatPythonWorkersWrite) {
  const TempDir folder;
  const auto path =
      folder.write("error.json",
                   R"({"message": {"message": "ValueError: boom", "extraInfo":
          {"py_callstack": "Traceback ...", "timestamp": "1700000001"}}})");
  const auto report = base::read_error_file(path);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->message, "ValueError: boom");
  EXPECT_EQ(report->unix_seconds, 1'700'000'001);
}

TEST(ErrorFile, ReadsAPlainMessageAndANumericTime) {
  const TempDir folder;
  EXPECT_EQ(base::read_error_file(folder.write("a", R"({"message": "plain"})"))
                ->message,
            "plain");
  EXPECT_EQ(
      base::read_error_file(
          folder.write(
              "b",
              R"({"message": {"message": "m", "extraInfo": {"timestamp": 5}}})"))
          ->unix_seconds,
      5);
}

TEST(ErrorFile, MissingOrBrokenFileIsNoReport) {
  const TempDir folder;
  EXPECT_FALSE(base::read_error_file(folder.path() / "none"));
  EXPECT_FALSE(base::read_error_file(folder.write("empty", "")));
  EXPECT_FALSE(base::read_error_file(folder.write("broken", "{\"message\": ")));
  EXPECT_FALSE(base::read_error_file(folder.write("list", "[1]")));
}

TEST(ErrorFile, BadUtf8AndBadPathDoNotThrow) {
  const TempDir folder;
  const auto path = folder.path() / "error.json";
  base::write_error_file(path, {.message = "bad \xff byte", .callstack = ""});
  EXPECT_TRUE(base::read_error_file(path));
  base::write_error_file(folder.path() / "no" / "folder", {});
}

}  // namespace
}  // namespace lockstep
