// Verdicts of real trainings. Other classes, without libtorch:
// tests/faults/verdict_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>

#include "distributed/training.h"
#include "lockstep/base/files.h"

namespace lockstep::testing {
namespace {

class TrainingVerdict : public ::testing::Test {
 protected:
  Training probe(const Words& flags) const {
    return {.recipe = "probe",
            .world = 2,
            .folder = temp_.path() / "run",
            .flags = Words{"--record", temp_.path().string(), "--batch_size=2",
                           "--val_every_epochs=0", "--n_steps=8"} +
                     flags};
  }

  // As disk_fault_shim.cpp makes it full.
  ProcessResult run_on_full_disk(const Training& training) const {
    temp_.write("faults", "write ENOSPC 0 *.pt.partial.*\n");
    ProcessOptions options = process_options(training);
    options.environment["LD_PRELOAD"] = DISK_FAULT_SHIM;
    options.environment["DISK_FAULTS"] = (temp_.path() / "faults").string();
    return run(command_of(training), options);
  }

  // At the end of the report, and in the run folder for the board.
  void expect_verdict(const ProcessResult& result, const std::string& cause,
                      const std::string& evidence) const {
    const auto at = result.err.rfind("Verdict: ");
    ASSERT_NE(at, std::string::npos) << result.err;
    const std::string verdict = result.err.substr(at);
    EXPECT_TRUE(verdict.starts_with("Verdict: " + cause + "\n")) << verdict;
    expect_in(verdict, evidence);
    expect_in(base::read_file(temp_.path() / "run" / "verdict.json"),
              "\"cause\":\"" + cause + "\"");
  }

  TempDir temp_;
};

TEST_F(TrainingVerdict, ARankThatWaitsForItsDataStarves) {
  temp_.write("hang", "");
  const ProcessResult result = run(probe({"--late_rank=1", "--timeout=20"}));
  EXPECT_EQ(result.exit_code, 6) << result.err;
  expect_verdict(result, "data starvation", "it waited for: rank 1 (pid ");
  expect_in(result.err, "phase: loading data");
}

TEST_F(TrainingVerdict, AFullDiskEndsATrainingThatRequiresItsSaves) {
  const ProcessResult result =
      run_on_full_disk(probe({"--save_every=2", "--save_required"}));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  expect_verdict(result, "disk full", "No space left on device");
}

TEST_F(TrainingVerdict, AFullDiskAtTheEndIsNamed) {
  const ProcessResult result = run_on_full_disk(probe({}));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  expect_in(result.err, "its last checkpoint could not be written");
  expect_verdict(result, "disk full", "No space left on device");
}

}  // namespace
}  // namespace lockstep::testing
