// Ranks on a GPU are killed in the middle of a step, or run out of memory: the
// training goes on from the memory of the others, with the bits of an
// undisturbed one.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "support/messages.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kLimit = 120;  // A training may take so many seconds.
constexpr const char* kReplaced = "and is started again; the other ranks keep";
constexpr const char* kRecovered = "nothing is repeated";

// The process of a rank; 0 when there is none.
pid_t worker_of(const Process& process, int rank) {
  const std::string is_rank = '\0' + ("RANK=" + std::to_string(rank)) + '\0';
  for (const pid_t pid : find_marked(process.marker())) {
    const std::string folder = "/proc/" + std::to_string(pid);
    const auto command = base::try_read_file(folder + "/cmdline");
    const auto environment = base::try_read_file(folder + "/environ");
    if (command && environment &&
        command->substr(0, command->find('\0')).ends_with("-worker") &&
        environment->find(is_rank) != std::string::npos) {
      return pid;
    }
  }
  return 0;
}

// The other ranks wait in the exchange of a step when it dies.
void kill_in_a_step(pid_t pid) {
  constexpr std::chrono::milliseconds kUntilTheOthersWait{500};
  kill(pid, SIGSTOP);
  std::this_thread::sleep_for(kUntilTheOthersWait);
  kill(pid, SIGKILL);
}

// What ranks and launcher have said, for a failure.
std::string told(const std::string& out, const std::string& err) {
  return "--- out\n" + out + "--- err\n" + err;
}

class GpuRecovery : public ::testing::Test {
 protected:
  Training tiny(const std::string& name, int world, const Words& flags) const {
    return {.world = world,
            .folder = temp_.path() / name,
            .flags = Words{"--device=cuda", "--deterministic", "--n_steps=600",
                           "--dropout=0.2", "--ema_decay=0.9", "--log_every=50",
                           "--keep_last=0"} +
                     flags};
  }

  static ProcessOptions options_of(const Training& training) {
    ProcessOptions options = process_options(training);
    options.environment.erase("CUDA_VISIBLE_DEVICES");
    if (training.recipe == "probe") {
      options.environment["LOCKSTEP_WORKER"] =
          beside_this_program("probe_worker");
    }
    options.environment["NCCL_DEBUG"] = "WARN";  // For a failure.
    options.timeout_seconds = kLimit;
    return options;
  }

  // The programs may lie elsewhere than where they were built.
  static Words command(const Training& training,
                       const std::string& recover = "memory") {
    Words words = command_of(training) +
                  Words{"--share-gpus", "--timeout=60", "--recover", recover};
    words.front() = beside_this_program("lockstep");
    return words;
  }

  static ProcessResult run_whole(const Training& training) {
    ProcessResult result = run(command(training), options_of(training));
    EXPECT_EQ(result.exit_code, 0) << told(result.out, result.err);
    return result;
  }

  // Kills these ranks one after another, each in the middle of a step.
  static void run_and_kill(const Training& training,
                           const std::vector<int>& victims) {
    Process process(command(training), options_of(training));
    ASSERT_TRUE(process.wait_for_output("step 50/", kLimit))
        << told(process.out(), process.err());
    int num_recoveries = 0;
    for (const int victim : victims) {
      SCOPED_TRACE("rank " + std::to_string(victim) + " is killed");
      const pid_t pid = worker_of(process, victim);
      ASSERT_GT(pid, 0) << told(process.out(), process.err());
      kill_in_a_step(pid);
      ++num_recoveries;
      const double begin = now_seconds();
      ASSERT_TRUE(wait_for(
          [&] { return num_of(kRecovered, process.out()) == num_recoveries; },
          kLimit))
          << told(process.out(), process.err());
      std::printf("recovery %d took %.1f s\n", num_recoveries,
                  now_seconds() - begin);
    }
    const ProcessResult result = process.wait();
    ASSERT_EQ(result.exit_code, 0) << told(result.out, result.err);
    EXPECT_EQ(num_of(kReplaced, result.err), num_recoveries)
        << told(result.out, result.err);
    expect_not_in(result.out + result.err, "cannot be a CUDA graph");
  }

  static int num_of(const std::string& part, const std::string& text) {
    int number = 0;
    for (auto at = text.find(part); at != std::string::npos;
         at = text.find(part, at + 1)) {
      ++number;
    }
    return number;
  }

  // Weights, optimizer, averages, what each rank alone knows, and records.
  static void expect_same(const Training& actual, const Training& expected) {
    const Tree last = last_checkpoint(actual.folder);
    const Tree whole = last_checkpoint(expected.folder);
    expect_equal(learned(last), learned(whole));
    for (const char* part : {"state", "generators", "running_sums"}) {
      expect_equal(*last.at("lockstep").value().find(part),
                   *whole.at("lockstep").value().find(part), part);
    }
    EXPECT_EQ(metric_lines(actual.folder), metric_lines(expected.folder));
  }

  void expect_kills_change_nothing(int world, const std::vector<int>& victims,
                                   const Words& flags) const {
    const Training whole = tiny("whole", world, flags);
    run_whole(whole);
    const Training killed = tiny("killed", world, flags);
    run_and_kill(killed, victims);
    if (!HasFatalFailure()) expect_same(killed, whole);
  }

  TempDir temp_;
};

TEST_F(GpuRecovery, AnUndisturbedTrainingHasTheBitsOfOneWithoutIt) {
  const Training whole = tiny("whole", 2, {});
  run_whole(whole);
  const Training without = tiny("without", 2, {});
  const ProcessResult result =
      run(command(without, "restart"), options_of(without));
  ASSERT_EQ(result.exit_code, 0) << told(result.out, result.err);
  expect_same(whole, without);
}

TEST_F(GpuRecovery, Rank1Of2DiesAndTheBitsStay) {
  expect_kills_change_nothing(2, {1}, {"--no_cuda_graph"});
}

TEST_F(GpuRecovery, Rank1Of2DiesWhileGraphsAreReplayed) {
  expect_kills_change_nothing(2, {1}, {"--cuda_graph"});
}

TEST_F(GpuRecovery, RanksOf3DieOneAfterAnotherAndRank0Too) {
  expect_kills_change_nothing(3, {0, 2}, {"--cuda_graph"});
}

// It gets a smaller batch, as a training that is stopped there and resumed.
TEST_F(GpuRecovery, MemoryThatRunsOutOnOneOf2RanksHalvesTheBatch) {
  const auto probe = [&](const std::string& name, const Words& flags) {
    return Training{
        .recipe = "probe",
        .world = 2,
        .folder = temp_.path() / name,
        .flags = Words{"--device=cuda", "--deterministic", "--train_samples=48",
                       "--epochs=2", "--dropout=0.3", "--own_normaliser",
                       "--ema_decay=0.9", "--log_every=2", "--on_oom=halve"} +
                 flags};
  };
  const Training halved = probe("halved", {"--batch_size=4", "--memory_steps",
                                           "3", "--memory_rank", "1"});
  const ProcessResult result = run_whole(halved);
  EXPECT_EQ(num_of("the batch per process is halved from", result.out) +
                num_of("the batch per process is halved from", result.err),
            1)
      << told(result.out, result.err);
  expect_not_in(result.out + result.err, "started again");
  const Training first =
      probe("resumed", {"--batch_size=4", "--stop_after_steps=2"});
  run(command(first), options_of(first));
  const Training rest =
      probe("resumed", {"--batch_size=2", "--gradient_accumulation_steps=2",
                        "--resume=latest", "--stop_after_steps=99"});
  run_whole(rest);
  expect_same(halved, rest);
}

}  // namespace
}  // namespace lockstep::testing
