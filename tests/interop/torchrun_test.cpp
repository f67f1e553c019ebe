// Python programs under `lockstep run`, Lockstep programs under Python's
// torchrun.
#include <gtest/gtest.h>

#include "support/free_port.h"
#include "support/hosts.h"
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

// With a local rank of its own for each process, in torch's place and spelling.
TEST(PythonUnderLockstep, LaunchHandsTheLocalRankOverAsTorchsDoes) {
  const testing::TempDir folder;
  const std::string script = folder.write(
      "says.py",
      "import os, sys\nif os.environ['RANK'] == '1': print(sys.argv[1:])\n");
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{}, {"--use_env"}}) {
    std::string texts[2];
    for (const bool is_ours : {true, false}) {
      std::vector<std::string> command = {"/usr/bin/env",
                                          "PYTHON_EXEC=" TORCH_PYTHON};
      if (is_ours) {
        command.insert(command.end(), {LOCKSTEP_PROGRAM, "launch"});
      } else {
        command.insert(
            command.end(),
            {TORCH_PYTHON, "-m", "torch.distributed.launch", "--standalone"});
      }
      command.push_back("--nproc_per_node=2");
      command.insert(command.end(), options.begin(), options.end());
      command.insert(command.end(), {script, "--lr", "1"});
      const auto result = run_long(command);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      texts[is_ours ? 0 : 1] = result.out;
    }
    EXPECT_EQ(texts[0], texts[1]);
    expect_in(texts[0], options.empty() ? "['--local-rank=1', '--lr', '1']"
                                        : "['--lr', '1']");
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

// Nodes with numbers on two hosts, of which one runs torchrun.
void expect_one_job(const std::vector<std::string>& first,
                    const std::vector<std::string>& second) {
  const testing::Hosts hosts(2);
  const auto node = [&hosts](std::vector<std::string> command, int rank,
                             const char* count) {
    command.insert(command.end(),
                   {"--nnodes=2", std::string("--nproc-per-node=") + count,
                    "--node-rank=" + std::to_string(rank),
                    "--master-addr=" + hosts.address(0), "--master-port=29500",
                    EXAMPLES_FOLDER "/01_all_reduce"});
    return hosts.on(rank, command);
  };
  const testing::ProcessOptions options{
      .environment = {{"OMP_NUM_THREADS", "1"}, {"CUDA_VISIBLE_DEVICES", ""}}};
  testing::Process node0(node(first, 0, "2"), options);
  testing::Process node1(node(second, 1, "1"), options);
  const ProcessResult result0 = node0.wait();
  const ProcessResult result1 = node1.wait();
  EXPECT_EQ(result0.exit_code, 0) << result0.err;
  EXPECT_EQ(result1.exit_code, 0) << result1.err;
  expect_in(result0.out, "rank 1 of 3: the sum is 6");
  expect_in(result1.out, "rank 2 of 3: the sum is 6");
}

TEST(TorchrunAndLockstep, FormOneJobAtTorchrunsStore) {
  expect_one_job({TORCHRUN, "--no-python"}, {LOCKSTEP_PROGRAM, "run"});
}

TEST(TorchrunAndLockstep, FormOneJobAtTheLaunchersStore) {
  expect_one_job({LOCKSTEP_PROGRAM, "run"}, {TORCHRUN, "--no-python"});
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
