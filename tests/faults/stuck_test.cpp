// Ranks that get stuck or are slow while the job runs: the launcher names the
// right one, with its cause and its stack.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "faults/launcher.h"
#include "lockstep/launch/processes.h"

namespace lockstep::testing {
namespace {

constexpr double kPatience = 120;  // the machine may be busy

// Three ranks of stuck_worker, of which rank 1 has the fault.
class StuckJob {
 public:
  explicit StuckJob(const std::string& fault, const Words& options = {})
      : launcher_(command(fault, options)) {}

  bool wait_for_text(const std::string& text) {
    return wait_for([&] { return contains(launcher_.err(), text); }, kPatience);
  }
  std::string err() const { return launcher_.err(); }
  char state_of_rank(const std::string& pid) const {
    const auto process = launch::find_process(std::stoi(pid));
    return process ? process->state : '-';
  }
  // "rank 1 (pid 7) is stuck" -> "7"
  std::string stuck_pid() const {
    const std::string text = err();
    const std::string before = "rank 1 (pid ";
    const size_t begin = text.find(before);
    if (begin == std::string::npos) return "0";
    return text.substr(begin + before.size(),
                       text.find(')', begin) - begin - before.size());
  }

  void clear_fault() {
    std::ofstream(folder_.path() / "go").put('\n');
    for (const launch::ProcessInfo& process :
         launch::find_descendants(launcher_.pid())) {
      kill(process.pid, SIGCONT);
    }
  }
  ProcessResult finish() {
    std::ofstream(folder_.path() / "end").put('\n');
    return launcher_.wait();
  }

 private:
  Words command(const std::string& fault, const Words& options) const {
    Words words = {"--nproc=3"};
    words.insert(words.end(), options.begin(), options.end());
    const bool is_slow = fault == "slow";
    words.insert(words.end(),
                 {LOCKSTEP_STUCK_WORKER, fault, "1", folder_.path().string(),
                  is_slow ? "1000000" : "60"});
    return job(words);
  }

  TempDir folder_;
  Process launcher_;
};

struct Case {
  const char* fault;
  const char* phase;
  const char* process;   // what its process does
  const char* function;  // in its stack
};

class Stuck : public ::testing::TestWithParam<Case> {};

TEST_P(Stuck, TheRankIsNamedWithPhaseCollectiveAndStack) {
  const Case& expected = GetParam();
  StuckJob job(expected.fault);
  ASSERT_TRUE(job.wait_for_text("is stuck")) << job.err();
  ASSERT_TRUE(job.wait_for_text(expected.function)) << job.err();
  const std::string name = "rank 1 (pid " + job.stuck_pid() + ")";
  EXPECT_EQ(count(job.err(), name + " is stuck"), 1) << job.err();
  job.clear_fault();
  ASSERT_TRUE(job.wait_for_text("goes on after")) << job.err();
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const std::string& text :
       {name + " is stuck for ", std::string(" in phase ") + expected.phase,
        std::string(", step 40 (limit "), std::string(expected.process),
        std::string("; ranks 0, 2 wait for it in all_reduce #41 (4.0 KiB)"),
        "stack of " + name, "main thread " + job.stuck_pid(),
        name + " goes on after "}) {
    EXPECT_TRUE(contains(result.err, text)) << text << "\n" << result.err;
  }
  // Who waits for it is not stuck.
  const size_t begin = result.err.find(name + " is stuck");
  const std::string meanwhile =
      result.err.substr(begin, result.err.find("goes on after") - begin);
  EXPECT_EQ(count(meanwhile, "is stuck"), 1) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Stuck,
    ::testing::Values(Case{"stop", "forward",
                           "its process is stopped (SIGSTOP); resume it",
                           "main"},
                      Case{"spin", "forward", "its process computes or spins",
                           "spin_in_user_code()"},
                      Case{"sleep", "loading data", "its process is sleeping",
                           "sleep_in_user_code()"},
                      Case{"deadlock", "forward", "its process is sleeping",
                           "lock_in_user_code()"}),
    [](const auto& instance) { return std::string(instance.param.fault); });

TEST(StuckRanks, AStoppedRankStaysStoppedWhileItsStackIsRead) {
  StuckJob job("stop");
  ASSERT_TRUE(job.wait_for_text("_start")) << job.err();
  EXPECT_EQ(job.state_of_rank(job.stuck_pid()), 'T');
  job.clear_fault();
  EXPECT_EQ(job.finish().exit_code, 0);
}

TEST(StuckRanks, RanksThatAllWaitAreReportedTogether) {
  StuckJob job("lost");
  ASSERT_TRUE(job.wait_for_text("all 3 ranks wait in all_reduce #41"))
      << job.err();
  job.clear_fault();
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(count(result.err, "is stuck"), 0) << result.err;
  EXPECT_EQ(count(result.err, "suspect the network"), 1) << result.err;
}

TEST(StuckRanks, ASlowRankIsNamedWithItsCauseAndWhenItIsInTimeAgain) {
  StuckJob job("slow");
  ASSERT_TRUE(job.wait_for_text("rank 1 slows the job by ")) << job.err();
  EXPECT_TRUE(contains(job.err(), "loading data takes it")) << job.err();
  for (const char* other : {"rank 0 slows", "rank 2 slows"}) {
    EXPECT_FALSE(contains(job.err(), other)) << job.err();
  }
  job.clear_fault();
  EXPECT_TRUE(job.wait_for_text("rank 1 no longer slows the job")) << job.err();
}

TEST(StuckRanks, APythonProgramShowsItsPythonStackWherePySpyIsInstalled) {
  const TempDir folder;
  const auto program = folder.path() / "py-spy";
  std::ofstream(program)
      << "#!/bin/sh\necho \"Thread $3: wait (train.py:7)\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  Process sleeper({LOCKSTEP_PYTHON, "-c", "import time; time.sleep(100)"});
  ProcessOptions options;
  options.environment["PATH"] = folder.path().string();
  const std::string pid = std::to_string(sleeper.pid());
  // It becomes Python a moment after it was started.
  EXPECT_TRUE(wait_for(
      [&] {
        return run({LOCKSTEP_STACK, pid}, options).out ==
               "Thread " + pid + ": wait (train.py:7)\n";
      },
      kPatience));
  kill(sleeper.pid(), SIGKILL);
}

TEST(StuckRanks, AProcessThatIsNotThereIsAnError) {
  const auto result = run({LOCKSTEP_STACK, "999999999"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err, "there is no such process")) << result.err;
}

}  // namespace
}  // namespace lockstep::testing
