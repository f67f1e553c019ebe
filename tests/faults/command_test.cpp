// The command line: what is refused before anything starts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "faults/launcher.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

TEST(Command, VersionAndHelp) {
  for (const char* word : {"version", "--version"}) {
    const auto version = run({LOCKSTEP_PROGRAM, word});
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_TRUE(version.out.starts_with("lockstep " LOCKSTEP_VERSION " ("));
    EXPECT_TRUE(contains(version.out, ")\ntorch "));
  }
  for (const char* word : {"help", "--help"}) {
    const auto help = run({LOCKSTEP_PROGRAM, word});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_TRUE(contains(help.out, "usage: lockstep"));
  }
  const auto help = run(job({"--help"}));
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(contains(help.out, "--nproc-per-node"));
}

TEST(Command, VersionNamesTheTorchThatIsFound) {
  const TempDir folder;
  const auto site = folder.path();
  std::filesystem::create_directories(site / "torch/lib");
  std::filesystem::create_directories(site / "nvidia/nccl/include");
  folder.write("torch/lib/libtorch_cpu.so", "");
  folder.write("torch/version.py",
               "__version__ = '2.11.0+cu130'\ncuda = '13.0'\n");
  folder.write("nvidia/nccl/include/nccl.h",
               "#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n"
               "#define NCCL_PATCH 9\n");
  const auto version =
      run({LOCKSTEP_PROGRAM, "--version"},
          {.environment = {{"LOCKSTEP_TORCH", site.string()}}});
  EXPECT_TRUE(version.out.ends_with(")\ntorch 2.11.0+cu130 (" +
                                    (site / "torch").string() +
                                    ")\nCUDA 13.0\nNCCL 2.28.9\n"))
      << version.out;
}

TEST(Command, MistakesEndWithTwoAndTheNearestWord) {
  const auto command = run({LOCKSTEP_PROGRAM, "rnu"});
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_TRUE(contains(command.err, "lockstep run"));
  const auto option = run(job({"--nproc-per-ndoe=2", "true"}));
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_TRUE(contains(option.err, "did you mean --nproc-per-node"));
  EXPECT_EQ(run(job({})).exit_code, 2);
}

TEST(Command, AMissingProgramIsReportedOnce) {
  const auto missing = run(job({"--nproc=4", "./no-such-program"}));
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_EQ(count(missing.err, "cannot start './no-such-program'"), 1);
  EXPECT_FALSE(contains(missing.err, "FAILED"));
}

TEST(Command, ABrokenInterpreterIsReportedOnce) {
  const TempDir folder;
  const auto script = folder.write_script("train", "#!/no/such/shell\n");
  const TempDir logs;
  const auto result = run(job({"--nproc=4", script}),
                          {.environment = {{"TMPDIR", logs.path().string()}}});
  EXPECT_TRUE(std::filesystem::is_empty(logs.path()));
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_EQ(count(result.err, "cannot start"), 1);
  EXPECT_FALSE(contains(result.err, "FAILED"));
}

TEST(Command, ClosedStandardStreamsDoNoHarm) {
  const std::string lockstep = LOCKSTEP_PROGRAM;
  const auto result =
      run({"sh", "-c",
           lockstep + " run --nproc=2 sh -c 'echo text; exit 4' >&- 2>&- <&-"});
  EXPECT_EQ(result.exit_code, 4);
}

TEST(Command, HelpOfTheProgramIsPrintedOnce) {
  const TempDir folder;
  const auto script =
      folder.write_script("train", "#!/bin/sh\necho usage: train\n");
  const auto result = run(job({"--nproc=8", script, "--help"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "usage: train\n");
  EXPECT_EQ(result.err, "");
}

TEST(Command, APythonScriptRunsUnbuffered) {
  const TempDir folder;
  const auto script = folder.write("train.py",
                                   "import os, sys\n"
                                   "print(os.environ['RANK'], sys.argv[1:])\n");
  const auto result = run(job({"--nproc=2", script, "--out=${local_rank}"}),
                          {.environment = {{"PYTHON_EXEC", LOCKSTEP_PYTHON}}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(sorted_lines(result.out),
            (Words{"0 ['--out=0']", "1 ['--out=1']"}));
}

TEST(Command, EightProcessesStartQuickly) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto result = run(job({"--nproc=8", "true"}));
    ASSERT_EQ(result.exit_code, 0);
    best = std::min(best, result.seconds);
  }
  // 50 ms is the promise; sanitizers and busy machines get room.
  EXPECT_LT(best, 0.5);
}

}  // namespace
}  // namespace lockstep::testing
