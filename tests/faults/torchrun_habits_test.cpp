// What tools around torchrun rely on, with a real launcher.
#include <gtest/gtest.h>

#include <csignal>

#include "faults/launcher.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

// The launcher below another one, which waits for its error file.
class OuterErrorFile : public ::testing::Test {
 protected:
  ProcessOptions options() const {
    return {.environment = {{"TORCHELASTIC_ERROR_FILE", file_},
                            {"CUDA_VISIBLE_DEVICES", ""}}};
  }
  std::string message() const {
    const auto report = base::read_error_file(file_);
    return report ? report->message : "";
  }

  TempDir folder_;
  std::string file_ = (folder_.path() / "outer.json").string();
};

constexpr const char* kReport =
    "printf '{\"message\": {\"message\": \"E: rank %s\", \"extraInfo\": "
    "{\"py_callstack\": \"\", \"timestamp\": \"1\"}}}' $RANK > "
    "$TORCHELASTIC_ERROR_FILE; ";

TEST_F(OuterErrorFile, GetsTheRootCause) {
  const auto result =
      run_shell({"--nproc=2"},
                std::string("[ $RANK = 0 ] && sleep 60; ") + kReport + "exit 3",
                options());
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(message(), "E: rank 1");
  EXPECT_TRUE(contains(base::read_file(file_), "\"errorCode\":3"));
}

TEST_F(OuterErrorFile, GetsTheLaunchersOwnErrors) {
  EXPECT_EQ(run(job({"--nproc=many", "true"}), options()).exit_code, 2);
  EXPECT_TRUE(contains(message(), "--nproc-per-node 'many'")) << message();
}

TEST_F(OuterErrorFile, GetsTheSignalThatEndedTheJob) {
  Process launcher(shell_job({}, "echo up; exec sleep 60"), options());
  ASSERT_TRUE(launcher.wait_for_output("up"));
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait().exit_code, 128 + SIGTERM);
  EXPECT_TRUE(contains(message(), "got signal: 15")) << message();
}

TEST_F(OuterErrorFile, StaysAwayAfterSuccess) {
  EXPECT_EQ(run_shell({}, "true", options()).exit_code, 0);
  EXPECT_EQ(message(), "");
}

TEST(TorchrunHabits, RunPathRunsAFileAsMain) {
  const TempDir folder;
  const auto script = folder.write(
      "no_suffix", "import sys\nprint(__name__, sys.argv[1:])\nsys.exit(4)\n");
  const auto result = run(job({"--run-path", script, "a", "--b"}),
                          {.environment = {{"PYTHON_EXEC", LOCKSTEP_PYTHON}}});
  EXPECT_EQ(result.out, "__main__ ['a', '--b']\n") << result.err;
  EXPECT_EQ(result.exit_code, 4);
}

TEST(TorchrunHabits, EventsArePrintedOnRequest) {
  const auto quiet = run_shell({"--event-log-handler=null"}, "true");
  EXPECT_FALSE(contains(quiet.err, "torchelastic.worker.status")) << quiet.err;
  const auto result = run_shell({"--event-log-handler=console"}, "exit 3");
  for (const char* event :
       {"{\"name\":\"torchelastic.worker.status.START\",\"source\":\"WORKER\"",
        "{\"name\":\"torchelastic.worker.status.FAILED\",\"source\":\"WORKER\"",
        "{\"name\":\"torchelastic.worker.status.SUCCEEDED\",\"source\":"
        "\"AGENT\""}) {
    EXPECT_TRUE(contains(result.err, event)) << result.err;
  }
}

TEST(TorchrunHabits, AnAbortOfPythonsThreadsNamesTheRemedy) {
  const auto result = run(python_job({"--nproc=2"}, R"(
import os
os.write(2, b"terminate called without an active exception\n")
os.abort()
)"),
                          {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  EXPECT_EQ(result.exit_code, 128 + SIGABRT);
  EXPECT_TRUE(contains(result.err, "destroy_process_group()")) << result.err;
}

}  // namespace
}  // namespace lockstep::testing
