#include "support/ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lockstep/program.h"
#include "support/process.h"

namespace lockstep::testing {
namespace {

constexpr const char* kInsideRank = "LOCKSTEP_TEST_INSIDE_RANK";

std::string this_test() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

[[noreturn]] void be_a_rank(const std::function<void()>& body) {
  int code = run_program(body);
  if (code == 0 && ::testing::Test::HasFailure()) code = 1;
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

std::string run_processes(const RankOptions& options,
                          const std::function<void()>& body) {
  if (std::getenv(kInsideRank) != nullptr) be_a_rank(body);
  auto environment = options.environment;
  environment[kInsideRank] = "1";
  environment.try_emplace("OMP_NUM_THREADS", "1");
  const auto result = run({LOCKSTEP_PROGRAM, "run", "--nproc-per-node",
                           std::to_string(options.size),
                           std::filesystem::read_symlink("/proc/self/exe"),
                           "--gtest_filter=" + this_test()},
                          {.environment = environment,
                           .folder = "",
                           .timeout_seconds = options.timeout_seconds,
                           .ignored_signals = {}});
  const std::string output = result.out + result.err;
  EXPECT_EQ(result.exit_code, options.expected_exit_code) << output;
  return output;
}

std::string run_ranks(const RankOptions& options,
                      const std::function<void(const World&)>& body) {
  return run_processes(options, [&] {
    body(World::from_environment({.device = DeviceChoice::kCpu}));
  });
}

}  // namespace lockstep::testing
