// Python programs under `lockstep run`, Lockstep programs under Python's
// torchrun.
#include <gtest/gtest.h>

#include "support/free_port.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::expect_in;
using testing::free_port;
using testing::ProcessResult;

ProcessResult run_long(const std::vector<std::string>& command) {
  return testing::run(command, {.environment = {{"OMP_NUM_THREADS", "1"}},
                                .folder = "",
                                .ignored_signals = {}});
}

// PYTHON_EXEC names the python that has torch.
ProcessResult python_under_lockstep(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {
      "/usr/bin/env",       "PYTHON_EXEC=" TORCH_PYTHON,
      LOCKSTEP_PROGRAM,     "run",
      "--nproc_per_node=2", PYTHON_SCRIPTS "/ddp_script.py"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_long(command);
}

TEST(PythonUnderLockstep, AnUnchangedDdpScriptTrains) {
  const auto result = python_under_lockstep({});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "rank 0 of 2 done");
  expect_in(result.out, "rank 1 of 2 done");
}

// All queries of the store, through torch's own client. torchrun hosts
// libtorch's server.
TEST(PythonUnderLockstep, TheStoreAnswersAsTorchrunsDoes) {
  const char* script = PYTHON_SCRIPTS "/store_queries.py";
  const auto ours = run_long({"/usr/bin/env", "PYTHON_EXEC=" TORCH_PYTHON,
                              LOCKSTEP_PROGRAM, "run", script});
  EXPECT_EQ(ours.exit_code, 0) << ours.err;
  const auto theirs =
      run_long({TORCHRUN, "--nproc_per_node=1", "--standalone", script});
  EXPECT_EQ(theirs.exit_code, 0) << theirs.err;
  EXPECT_EQ(ours.out, theirs.out);
  expect_in(ours.out, "all queries done");
}

TEST(PythonUnderLockstep, AnExceptionIsShownInTorchrunsFrame) {
  const auto result = python_under_lockstep({"--fail", "1"});
  EXPECT_EQ(result.exit_code, 1);
  for (const char* part :
       {"ddp_script.py FAILED",
        "Root Cause (first observed failure):", "rank      : 1 (local_rank: 1)",
        "exitcode  : 1", "RuntimeError: the data set is not there"}) {
    expect_in(result.err, part);
  }
}

TEST(PythonUnderLockstep, TheExitCodeOfTheRootCauseIsPassedOn) {
  const auto result = python_under_lockstep({"--exit", "1"});
  EXPECT_EQ(result.exit_code, 7);
  expect_in(result.err, "exitcode  : 7");
}

// Neither launcher's worker has asked for an error file by @record.
TEST(PythonUnderLockstep, RunPathReportsTheExceptionAsTorchrunDoes) {
  const testing::TempDir folder;
  const std::string script = folder.write(
      "fails.py", "import sys\nraise RuntimeError(str(sys.argv[1:]))\n");
  for (const std::vector<std::string>& launcher :
       std::vector<std::vector<std::string>>{{LOCKSTEP_PROGRAM, "run"},
                                             {TORCHRUN, "--standalone"}}) {
    std::vector<std::string> command = {"/usr/bin/env",
                                        "PYTHON_EXEC=" TORCH_PYTHON};
    command.insert(command.end(), launcher.begin(), launcher.end());
    command.insert(command.end(), {"--run_path", script, "a"});
    const auto result = run_long(command);
    EXPECT_EQ(result.exit_code, 1);
    const auto frame = result.err.find("Root Cause (first observed failure):");
    ASSERT_NE(frame, std::string::npos) << result.err;
    expect_in(result.err.substr(frame), "RuntimeError: ['a']");
  }
}

TEST(LockstepUnderTorchrun, AWorkerTrains) {
  const auto result = run_long(
      {TORCHRUN, "--nproc_per_node=2", "--master_port=0", "--standalone",
       "--no-python", EXAMPLES_FOLDER "/02_ddp_in_30_lines"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "step 200 loss");
}

TEST(LockstepUnderTorchrun, TheStoreOfTheAgentIsUsed) {
  // The static back end: torchrun itself listens on the port.
  const auto result =
      run_long({TORCHRUN, "--nproc_per_node=3", "--master_port=" + free_port(),
                "--no-python", EXAMPLES_FOLDER "/01_all_reduce"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "rank 2 of 3: the sum is 6");
}

TEST(LockstepUnderTorchrun, ALauncherPerRankIsRefused) {
  const auto result =
      run_long({"/usr/bin/env", "LOCKSTEP_WORKER=/bin/true", TORCHRUN,
                "--nproc_per_node=2", "--standalone", "--no-python",
                LOCKSTEP_PROGRAM, "train", "tiny"});
  EXPECT_EQ(result.exit_code, 1);
  expect_in(result.err, "of 2 of torchrun: 2 launchers would run 2 jobs");
  expect_in(result.err, "lockstep-worker train RECIPE");
}

TEST(LockstepUnderTorchrun, TheErrorReachesTorchrunsFrame) {
  const auto result =
      run_long({"/usr/bin/env", "GLOO_SOCKET_IFNAME=nope0", TORCHRUN,
                "--nproc_per_node=2", "--standalone", "--no-python",
                EXAMPLES_FOLDER "/01_all_reduce"});
  EXPECT_EQ(result.exit_code, 1);
  const auto frame = result.err.find("01_all_reduce FAILED");
  ASSERT_NE(frame, std::string::npos) << result.err;
  for (const char* part :
       {"exitcode  : 2",
        "ConfigError: GLOO_SOCKET_IFNAME='nope0': this host has no network "
        "interface 'nope0'"}) {
    expect_in(result.err.substr(frame), part);
  }
}

}  // namespace
}  // namespace lockstep
