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
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> command = {self.parent_path() / "lockstep", "run",
                                      "--nproc-per-node",
                                      std::to_string(options.size)};
  command.insert(command.end(), options.launcher_options.begin(),
                 options.launcher_options.end());
  command.insert(command.end(), {self, "--gtest_filter=" + this_test()});
  const auto result = run(command, {.environment = environment,
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
    body(World::from_environment({.device = options.device}));
  });
}

}  // namespace lockstep::testing
