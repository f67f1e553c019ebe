// Where the output of the workers goes.
#include <gtest/gtest.h>

#include <filesystem>

#include "faults/launcher.h"
#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTalk = "echo out $RANK; echo err $RANK >&2";

// The folder of the only run below a log folder.
fs::path run_folder(const TempDir& logs) {
  return fs::directory_iterator(logs.path())->path();
}

ProcessOptions quiet() { return {.environment = {{"OMP_NUM_THREADS", "1"}}}; }

TEST(Output, AllRanksAreShown) {
  const auto result = run_shell({"--nproc=3"}, kTalk, quiet());
  EXPECT_EQ(sorted_lines(result.out), (Words{"out 0", "out 1", "out 2"}));
  EXPECT_EQ(sorted_lines(result.err), (Words{"err 0", "err 1", "err 2"}));
}

TEST(Output, TheRanksFilterHidesOthers) {
  const auto result =
      run_shell({"--nproc=3", "--local-ranks-filter=1"}, kTalk, quiet());
  EXPECT_EQ(result.out, "out 1\n");
  EXPECT_EQ(result.err, "err 1\n");
}

TEST(Output, RedirectsGoToFilesOnly) {
  const TempDir logs;
  const auto result = run_shell({"--nproc=2", "-r", "0:3,1:2", "--rdzv-id=job",
                                 "--log-dir", logs.path().string()},
                                kTalk, quiet());
  EXPECT_EQ(result.out, "out 1\n");
  EXPECT_EQ(result.err, "");
  const auto run = run_folder(logs);
  EXPECT_TRUE(run.filename().string().starts_with("job_"));
  EXPECT_EQ(base::read_file(run / "attempt_0/0/stdout.log"), "out 0\n");
  EXPECT_EQ(base::read_file(run / "attempt_0/0/stderr.log"), "err 0\n");
  EXPECT_EQ(base::read_file(run / "attempt_0/1/stderr.log"), "err 1\n");
  EXPECT_FALSE(fs::exists(run / "attempt_0/1/stdout.log"));
}

TEST(Output, TeeGoesToFilesAndWithAPrefixToTheConsole) {
  const TempDir logs;
  const auto result = run_shell(
      {"--nproc=2", "-t3", "--log-dir", logs.path().string()}, kTalk, quiet());
  EXPECT_EQ(sorted_lines(result.out),
            (Words{"[default0]:out 0", "[default1]:out 1"}));
  EXPECT_EQ(sorted_lines(result.err),
            (Words{"[default0]:err 0", "[default1]:err 1"}));
  EXPECT_EQ(base::read_file(run_folder(logs) / "attempt_0/1/stdout.log"),
            "out 1\n");
}

TEST(Output, FilteredLinesAreCopiedWithTheirRank) {
  const TempDir logs;
  run_shell({"--nproc=2", "--duplicate-stdout-filters=loss", "--log-dir",
             logs.path().string()},
            "echo loss $RANK; echo other", quiet());
  EXPECT_EQ(sorted_lines(base::read_file(run_folder(logs) /
                                         "attempt_0/filtered_stdout.log")),
            (Words{"[default0]:loss 0", "[default1]:loss 1"}));
}

TEST(Output, LogLinesThatAFullDiskTakesAreReported) {
  const TempDir logs;
  const std::string lockstep = LOCKSTEP_PROGRAM;
  // Only files of the launcher reach the limit, of 4 KiB; the lines of stderr
  // are too few.
  const auto result = run(
      {"sh", "-c",
       "ulimit -f 8; exec " + lockstep + " run --tee 1 --log-dir " +
           logs.path().string() +
           " sh -c 'i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); "
           "done' > /dev/null"},
      quiet());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(count(result.err, "cannot write log file"), 1) << result.err;
  const std::string log =
      base::read_file(run_folder(logs) / "attempt_0/0/stdout.log");
  // The last one in the file is cut.
  const int missing = 2000 - count(log, "\n");
  EXPECT_TRUE(contains(result.err, "lockstep: " + std::to_string(missing) +
                                       " lines are missing in log file"))
      << result.err;
}

TEST(Output, ConsoleLinesThatAFullDiskTakesAreReported) {
  const std::string lockstep = LOCKSTEP_PROGRAM;
  const auto result =
      run({"sh", "-c",
           "exec " + lockstep +
               " run --nproc 2 sh -c 'echo a; echo b' > /dev/full"},
          {.environment = {{"CUDA_VISIBLE_DEVICES", ""},
                           {"OMP_NUM_THREADS", "1"}}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err,
                       "lockstep: 4 lines could not be written to stdout: No "
                       "space left on device"))
      << result.err;
}

TEST(Output, ARedirectedErrorStillAppearsInTheReport) {
  const TempDir logs;
  const auto result =
      run_shell({"--nproc=2", "-r3", "--log-dir", logs.path().string()},
                "echo news $RANK >&2; [ $RANK = 1 ] && exit 3; sleep 60");
  EXPECT_TRUE(contains(result.err, "    news 1"));
}

TEST(Output, NoTemporaryFolderIsLeftWithoutLogFiles) {
  const TempDir folder;
  for (const char* script : {"true", "exit 3"}) {
    run_shell({"--nproc=2"}, script,
              {.environment = {{"TMPDIR", folder.path().string()}}});
    EXPECT_TRUE(fs::is_empty(folder.path())) << script;
  }
}

TEST(Output, ATemporaryFolderWithLogFilesIsNamed) {
  const TempDir folder;
  const auto result =
      run_shell({"--nproc=2", "-r3"}, kTalk,
                {.environment = {{"TMPDIR", folder.path().string()}}});
  EXPECT_TRUE(
      contains(result.err, "log files are in " + folder.path().string()));
}

TEST(Output, LinesOfTwoRanksNeverMix) {
  const auto result = run(python_job({"--nproc=4"}, R"(
import os, sys, time
rank = os.environ["RANK"]
for i in range(200):
    for part in (rank, "-" * 40, rank, "\n"):
        sys.stdout.write(part)
        sys.stdout.flush()
)"));
  EXPECT_EQ(result.exit_code, 0);
  const Words lines = sorted_lines(result.out);
  ASSERT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) {
    EXPECT_EQ(line.size(), 42u);
    EXPECT_EQ(line.front(), line.back());
  }
}

TEST(Output, ALoneWorkerKeepsTheConsole) {
  const auto result = run(python_job({}, R"(
import os
print(os.readlink("/proc/self/fd/1").startswith("pipe:"))
)"));
  EXPECT_EQ(result.out, "False\n");
}

TEST(Output, AClosedConsoleEndsTheJob) {
  const std::string lockstep = LOCKSTEP_PROGRAM;
  Process shell({"sh", "-c", lockstep + " run --nproc=2 yes | head -n 3"});
  const auto result = shell.wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.out, "y\ny\ny\n");
  EXPECT_TRUE(wait_until_gone(shell.marker(), 5).empty());
}

}  // namespace
}  // namespace lockstep::testing
