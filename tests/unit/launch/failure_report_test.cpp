#include "lockstep/launch/failure_report.h"

#include <gtest/gtest.h>

#include "lockstep/base/clock.h"

namespace lockstep {
namespace {

launch::Failure failure_of(int rank, int exit_code, double time) {
  launch::Failure failure;
  failure.rank = rank;
  failure.local_rank = rank;
  failure.pid = 100 + rank;
  failure.exit_code = exit_code;
  failure.unix_time = time;
  return failure;
}

TEST(FailureReport, AnErrorOfAllRanksIsShownOnce) {
  std::vector<launch::Failure> failures;
  for (int rank = 0; rank < 3; ++rank) {
    launch::Failure failure = failure_of(rank, 4, 10 + rank);
    failure.error =
        base::ErrorReport{.message = "IoError: no such file", .callstack = ""};
    failures.push_back(failure);
  }
  const std::string text = launch::failure_report("p", "box", failures, "", 3);
  EXPECT_EQ(text.find("no such file"), text.rfind("no such file")) << text;
  EXPECT_NE(text.find("  the same error on all 3 ranks\n"), std::string::npos);
  EXPECT_NE(text.find("<NO_OTHER_FAILURES>"), std::string::npos) << text;
  failures[1].error->message = "IoError: disk full";
  const std::string mixed = launch::failure_report("p", "box", failures, "", 3);
  EXPECT_NE(mixed.find("the same error on ranks 0, 2\n"), std::string::npos);
  EXPECT_NE(mixed.find("disk full"), std::string::npos) << mixed;
}

TEST(FailureReport, HasTheFrameOfTorchrun) {
  launch::Failure failure = failure_of(1, 1, 1'700'000'000);
  failure.error_file = "/logs/1/error.json";
  failure.error = base::ErrorReport{.message = "ValueError: boom",
                                    .callstack = "Traceback:\n  line\nboom\n"};
  const std::string border(60, '=');
  const std::string section(60, '-');
  EXPECT_EQ(
      launch::failure_report("train.py", "box", std::vector{failure}, "", 2),
      border + "\ntrain.py FAILED\n" + section +
          "\nFailures:\n  <NO_OTHER_FAILURES>\n" + section +
          "\nRoot Cause (first observed failure):\n[0]:\n"
          "  time      : " +
          base::local_timestamp(1'700'000'000) +
          "\n  host      : box\n"
          "  rank      : 1 (local_rank: 1)\n"
          "  exitcode  : 1 (pid: 101)\n"
          "  error_file: /logs/1/error.json\n"
          "  traceback : Traceback:\n    line\n  boom\n" +
          border + "\n");
}

TEST(FailureReport, TheEarliestFailureIsTheCause) {
  const std::vector failures = {failure_of(0, 1, 20), failure_of(1, -9, 10),
                                failure_of(2, 5, 30)};
  EXPECT_EQ(launch::find_root_cause(failures), 1u);
  const std::string text = launch::failure_report("p", "box", failures, "", 8);
  const auto root = text.find("Root Cause");
  EXPECT_LT(text.find("rank      : 0"), root);
  EXPECT_LT(text.find("rank      : 2"), root);
  EXPECT_GT(text.find("rank      : 1"), root);
  EXPECT_GT(text.find("[0]:"), root);
}

TEST(FailureReport, ARankThatOnlyLostItsPeerIsNotTheCause) {
  std::vector failures = {failure_of(0, 5, 10), failure_of(1, -9, 20)};
  EXPECT_EQ(launch::find_root_cause(failures),
            0u);  // a foreign program's own code
  failures[0].error =
      base::ErrorReport{.message = "PeerError: gone", .callstack = ""};
  EXPECT_EQ(launch::find_root_cause(failures), 1u);
  failures[0].exit_code = -15;  // the launcher ended it while it reported
  EXPECT_EQ(launch::find_root_cause(failures), 1u);
  failures[0].error.reset();
  failures[0].exit_code = 1;
  EXPECT_EQ(launch::find_root_cause(failures), 0u);
  failures[0].last_lines = {"RuntimeError: Connection closed by peer [::1]"};
  EXPECT_EQ(launch::find_root_cause(failures), 1u);
}

TEST(FailureReport, ASignalIsExplained) {
  const std::string text = launch::failure_report(
      "p", "box", std::vector{failure_of(0, -9, 1)}, "", 2);
  EXPECT_NE(text.find("exitcode  : -9 (pid: 100)"), std::string::npos);
  EXPECT_NE(text.find("Signal 9 (SIGKILL) received by PID 100"),
            std::string::npos);
  EXPECT_NE(text.find("out-of-memory"), std::string::npos);
}

TEST(FailureReport, ACrashIsToldWithPositionMemoryAndStack) {
  launch::Failure failure = failure_of(0, -11, 1);
  failure.position = "step 12, forward";
  failure.peak_bytes = int64_t{3} << 30;
  failure.crash =
      launch::CrashReport{.cause = "at address 0x10, in thread train",
                          .stack = {"f()+0x2 (b)", "main+0x3 (b)"}};
  const std::string text =
      launch::failure_report("p", "box", std::vector{failure}, "", 2);
  EXPECT_NE(text.find("  memory    : 3.0 GiB resident at its peak\n"
                      "  position  : step 12, forward\n"
                      "  stack     : at address 0x10, in thread train\n"
                      "    #0 f()+0x2 (b)\n"
                      "    #1 main+0x3 (b)\n"),
            std::string::npos)
      << text;
}

TEST(FailureReport, AMeaningThatIsKnownReplacesTheUsualOne) {
  launch::Failure failure = failure_of(0, -9, 1);
  failure.meaning = "killed by the kernel";
  const std::string text =
      launch::failure_report("p", "box", std::vector{failure}, "", 2);
  EXPECT_NE(text.find("meaning   : killed by the kernel\n"), std::string::npos);
  EXPECT_EQ(text.find("suspect"), std::string::npos);
}

TEST(FailureReport, ShowsLastLinesAndExtraText) {
  launch::Failure failure = failure_of(0, 3, 1);
  failure.last_lines = {"first", "second"};
  const std::string text =
      launch::failure_report("p", "box", std::vector{failure}, "  extra\n", 2);
  EXPECT_NE(text.find("    first\n    second\n"), std::string::npos);
  EXPECT_NE(text.find("-\n  extra\n="), std::string::npos);
}

TEST(FailureReport, ExitCodes) {
  const auto code_of = [](const std::vector<launch::Failure>& failures) {
    return launch::exit_code_for(failures);
  };
  EXPECT_EQ(code_of({failure_of(0, 3, 1)}), 3);
  EXPECT_EQ(code_of({failure_of(0, -11, 1)}), 139);
  // The cause reported its error, and was ended before it could exit.
  launch::Failure ended = failure_of(1, -15, 1);
  ended.on_request = true;
  EXPECT_EQ(code_of({failure_of(0, 2, 5), ended}), 2);
}

TEST(FailureReport, TheExitCodeIsThatOfACauseNotOfItsConsequence) {
  const auto with_error = [](int rank, int code, double time,
                             const std::string& message) {
    launch::Failure failure = failure_of(rank, code, time);
    failure.error = base::ErrorReport{};
    failure.error->message = message;
    return failure;
  };
  // Rank 0 ended first, because rank 2 had found the timeout and left; rank 2
  // was still reporting it when it was asked to end.
  const auto consequence = with_error(0, 5, 1, "PeerError: rank 2 ended");
  const auto timeout = with_error(1, 6, 3, "TimeoutError: not in time");
  launch::Failure cause = with_error(2, 6, 2, "TimeoutError: not in time");
  cause.on_request = true;
  EXPECT_EQ(launch::exit_code_for(std::vector{consequence, cause}), 6);
  cause.exit_code = -SIGTERM;
  EXPECT_EQ(launch::exit_code_for(std::vector{consequence, timeout, cause}), 6);
  EXPECT_EQ(launch::exit_code_for(std::vector{consequence, cause}), 5);
}

}  // namespace
}  // namespace lockstep
