// `lockstep doctor` where there is a GPU: copies, and NCCL between processes
// that share it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "support/process.h"

namespace lockstep::testing {
namespace {

// The finding of a check, of two processes.
nlohmann::json doctor_finding(const std::string& check,
                              const std::vector<std::string>& options,
                              const ProcessOptions& process) {
  std::vector<std::string> command = {beside_this_program("lockstep"),
                                      "doctor",
                                      "--json",
                                      "--nproc",
                                      "2",
                                      "--share-gpus"};
  command.insert(command.end(), options.begin(), options.end());
  const ProcessResult result = run(command, process);
  const auto all = nlohmann::json::parse(result.out, nullptr, false);
  if (all.is_object()) {
    for (const auto& one : all["checks"]) {
      if (one["check"] == check) return one;
    }
  }
  ADD_FAILURE() << "no line '" << check << "':\n" << result.out << result.err;
  return {{"level", ""}, {"text", ""}, {"class", ""}};
}

TEST(GpuDoctor, MeasuresNcclBetweenProcesses) {
  const auto finding =
      doctor_finding("exchange NCCL", {}, {.timeout_seconds = 600});
  EXPECT_EQ(finding["level"], "ok") << finding;
  EXPECT_TRUE(std::regex_match(
      finding["text"].get<std::string>(),
      std::regex("2 processes( on 1 GPU)?: all-reduce at "
                 "[0-9]*[1-9][0-9.]* [KMGT]iB/s, [0-9]+ us for a small one")))
      << finding;
}

TEST(GpuDoctor, ChecksTheDataOfCopies) {
  const auto finding =
      doctor_finding("gpu copies", {}, {.timeout_seconds = 600});
  EXPECT_EQ(finding["level"], "ok") << finding;
  EXPECT_TRUE(std::regex_search(
      finding["text"].get<std::string>(),
      std::regex("arrived unchanged, the slowest at [0-9.]+ [GT]iB/s")))
      << finding;
}

TEST(GpuDoctor, SaysThatNcclHangs) {
  const auto finding =
      doctor_finding("exchange NCCL", {"--limit", "20"},
                     {.environment = {{"LOCKSTEP_DOCTOR_STALL", "exchange"}},
                      .timeout_seconds = 600});
  EXPECT_EQ(finding["class"], "hang") << finding;
  EXPECT_EQ(finding["level"], "failure") << finding;
}

}  // namespace
}  // namespace lockstep::testing
