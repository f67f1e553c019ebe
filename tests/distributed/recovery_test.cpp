// Ranks are killed, and the training goes on from the memory of the others:
// with the bits and the records of an undisturbed one.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "distributed/training.h"
#include "distributed/training_processes.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "support/messages.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kPatience = 200;  // The machine may be busy.
constexpr const char* kReplaced = "and is started again; the other ranks keep";

int count(const std::string& text, const std::string& part) {
  int number = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++number;
  }
  return number;
}

class RecoveryFromMemory : public ::testing::Test {
 protected:
  // Dropout, batch statistics, averages, validation, samples: what a rank must
  // not lose.
  Training training(const std::string& name, int world) const {
    return {.recipe = "probe",
            .world = world,
            .folder = temp_.path() / name,
            .flags = {"--batch_size=2", "--epochs=4", "--dropout=0.3",
                      "--batch_norm", "--own_normaliser", "--ema_decay=0.9",
                      "--log_every=2", "--sample_every=5", "--keep_last=0"}};
  }

  fs::path record() const { return temp_.path() / "record"; }

  Training undisturbed(int world) const {
    Training whole = training("whole", world);
    run_well(whole);
    return whole;
  }

  // Weights, optimizer, averages, and what each rank alone knows.
  static void expect_same_state(const Tree& actual, const Tree& expected) {
    expect_equal(learned(actual), learned(expected));
    for (const char* part : {"state", "generators", "running_sums"}) {
      expect_equal(*actual.at("lockstep").value().find(part),
                   *expected.at("lockstep").value().find(part), part);
    }
  }

  static void expect_same(const Training& actual, const Training& expected) {
    expect_same_state(last_checkpoint(actual.folder),
                      last_checkpoint(expected.folder));
    expect_same_state(load_checkpoint(actual.folder / "best_model.pt"),
                      load_checkpoint(expected.folder / "best_model.pt"));
    EXPECT_EQ(metric_lines(actual.folder), metric_lines(expected.folder));
    EXPECT_EQ(files_below(actual.folder / "samples"),
              files_below(expected.folder / "samples"));
  }

  TempDir temp_;
};

struct Moment {
  std::string phase;
  int call = 0;
  int victim = 0;
  std::string exchange;
};

class RecoveryAt : public RecoveryFromMemory {
 protected:
  // Kills the rank in that moment; the training goes on to its end.
  void run_and_kill(Training killed, const Moment& moment) {
    fs::remove_all(record());
    fs::create_directory(record());
    fs::remove_all(killed.folder);
    killed.flags =
        killed.flags + Words{"--record",     record().string(),
                             "--pause_in",   moment.phase,
                             "--pause_call", std::to_string(moment.call)};
    ProcessOptions options = process_options(killed);
    options.environment["LOCKSTEP_EXCHANGE"] = moment.exchange;
    Process process(command_of(killed), options);
    const pid_t pid = pid_in("paused_" + std::to_string(moment.victim));
    ASSERT_GT(pid, 0) << process.err();
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    std::ofstream(record() / "go") << "go";
    const ProcessResult result = process.wait();
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
    EXPECT_EQ(count(result.err, kReplaced), 1) << result.err;
    expect_in(result.out + result.err, "nothing is repeated");
  }

  // Read from a file that a rank of the probe writes; 0 when it does not come.
  pid_t pid_in(const std::string& name) const {
    const fs::path path = record() / name;
    const auto text = [&] { return base::try_read_file(path).value_or(""); };
    if (!wait_for([&] { return !text().empty(); }, kPatience)) return 0;
    return static_cast<pid_t>(
        base::parse_integer(base::trim(text())).value_or(0));
  }

  static constexpr int kWorld = 3;
};

TEST_F(RecoveryAt, AnyMomentGoesOnWithTheSameBits) {
  const Training whole = undisturbed(kWorld);
  for (const Moment& moment : {Moment{"train", 0, 1, "shared"},
                               {"train", 7, 0, "shared"},
                               {"train", 7, 2, "gloo"},
                               {"validate", 0, 1, "shared"},
                               {"validate", 1, 0, "gloo"},
                               {"sample", 1, 0, "shared"},
                               {"sample", 1, 2, "shared"}}) {
    SCOPED_TRACE(moment.phase + " " + std::to_string(moment.call) + " on " +
                 std::to_string(moment.victim) + ", " + moment.exchange);
    const Training killed = training("killed", kWorld);
    run_and_kill(killed, moment);
    expect_same(killed, whole);
  }
}

// It has found a new best model, which is saved after the samples are drawn.
TEST_F(RecoveryAt, ABestModelIsNotLostWithRank0) {
  const auto with_best = [&](const std::string& name) {
    Training training = this->training(name, kWorld);
    training.flags = training.flags +
                     Words{"--val_every=5", "--validation_losses", "1", "9"};
    return training;
  };
  run_well(with_best("whole"));
  run_and_kill(with_best("killed"), {"sample", 0, 0, "shared"});
  const auto best = [&](const char* name) {
    return load_checkpoint(temp_.path() / name / "best_model.pt");
  };
  EXPECT_EQ(best("whole").at("global_step").as_int(), 5);
  expect_same_state(best("killed"), best("whole"));
}

// Rank 0 still writes the last checkpoint, the others have done all.
TEST_F(RecoveryAt, TheEndAfterTheLastStepGoesOnWithTheSameBits) {
  const Training whole = undisturbed(kWorld);
  fs::create_directory(record());
  temp_.write("faults", "fsync HOLD 0 *checkpoint_step_16.pt.partial.*\n");
  Training killed = training("killed", kWorld);
  killed.flags = killed.flags + Words{"--record", record().string()};
  ProcessOptions options = process_options(killed);
  options.environment["LD_PRELOAD"] = DISK_FAULT_SHIM;
  options.environment["DISK_FAULTS"] = (temp_.path() / "faults").string();
  Process process(command_of(killed) + Words{"--recover", "memory"}, options);
  const auto is_written = [&] {
    return std::ranges::any_of(
        files_below(killed.folder), [](const std::string& name) {
          return contains(name, "checkpoint_step_16.pt.partial.");
        });
  };
  ASSERT_TRUE(wait_for(is_written, kPatience)) << process.err();
  kill(pid_in("pid_1"), SIGKILL);
  ASSERT_TRUE(
      wait_for([&] { return contains(process.err(), kReplaced); }, kPatience))
      << process.err();
  fs::remove(temp_.path() / "faults");
  const ProcessResult result = process.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  expect_same(killed, whole);
}

// Nobody would meet the new process.
TEST_F(RecoveryAt, ARankThatDiesWhenAllIsDoneIsNotReplaced) {
  const Training whole = undisturbed(kWorld);
  fs::create_directory(record());
  Training killed = training("killed", kWorld);
  killed.flags =
      killed.flags + Words{"--record", record().string(), "--pause_in", "end"};
  Process process(command_of(killed) + Words{"--recover", "memory"},
                  process_options(killed));
  const pid_t pid = pid_in("paused_1");
  ASSERT_GT(pid, 0) << process.err();
  kill(pid, SIGKILL);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_EQ(count(result.err, kReplaced), 0) << result.err;
  expect_same(killed, whole);
}

// A training without end of which ranks are killed; it is stopped when that is
// done, and compared with one that stops at the same step by itself.
class KilledTraining : public RecoveryFromMemory {
 protected:
  KilledTraining()
      : killed_{.world = 4,
                .folder = temp_.path() / "killed",
                .flags = {"--n_steps=10000000", "--log_every=50",
                          "--val_every=20", "--keep_last=0"}},
        process_(command_of(killed_) + Words{"--recover", "memory"},
                 options()) {}

  ProcessOptions options() const {
    ProcessOptions options = process_options(killed_);
    options.timeout_seconds = kLimit;
    return options;
  }

  bool comes(const std::function<bool()>& condition) const {
    return wait_for([&] { return condition() || has_ended(); }, kLimit) &&
           !has_ended();
  }
  // A zombie, as it is not waited for yet.
  bool has_ended() const { return stat_fields(process_.pid()).at(0) == "Z"; }

  // All four; a process that was just started is not a worker yet.
  std::vector<RankProcess> all_ranks() const {
    std::vector<RankProcess> ranks;
    EXPECT_TRUE(comes([&] {
      ranks = ranks_of(process_);
      return ranks.size() == 4;
    })) << process_.err();
    return ranks;
  }

  int num_recoveries() const {
    return count(process_.out(), "nothing is repeated");
  }

  // Not forever without a step: ten deaths in a row end the job.
  bool trains_on() const {
    const auto num_lines = [&] { return count(process_.out(), " loss "); };
    const int before = num_lines();
    return comes([&] { return num_lines() > before + 1; });
  }

  void expect_undisturbed(int num_kills) {
    ASSERT_TRUE(trains_on()) << process_.err();
    process_.send(SIGTERM);
    const ProcessResult result = process_.wait();
    ASSERT_EQ(result.exit_code, 128 + SIGTERM) << result.err << result.out;
    EXPECT_EQ(count(result.err, kReplaced), num_kills) << result.err;
    // Both end by plan: a signal may come before or after the validation of a
    // step.
    Training rest = killed_;
    rest.flags = rest.flags + Words{"--resume=latest", "--stop_after_steps=7"};
    run_well(rest);
    const int64_t step = last_checkpoint(killed_.folder)
                             .at("lockstep")
                             .at("state")
                             .at("step")
                             .as_int();
    Training whole = killed_;
    whole.folder = temp_.path() / "whole";
    whole.flags.push_back("--stop_after_steps=" + std::to_string(step));
    run_well(whole);
    expect_same(killed_, whole);
  }

  static constexpr double kLimit = 400;
  Training killed_;
  Process process_;
};

TEST_F(KilledTraining, AgainAndAgainHasTheSameBits) {
  constexpr int kKills = 8;
  constexpr int kKillsOfNewest = 5;
  std::mt19937 random(4);
  ASSERT_TRUE(comes([&] { return contains(process_.out(), "step 50/"); }));
  // One at a time.
  for (int turn = 0; turn < kKills; ++turn) {
    // Some kills hit ranks that have their state, but do not train yet.
    const unsigned longest = turn % 2 == 0 ? 200 : 20;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % longest));
    const auto ranks = all_ranks();
    ASSERT_EQ(ranks.size(), 4U);
    kill(ranks[random() % 4].pid, SIGKILL);
    ASSERT_TRUE(comes([&] { return num_recoveries() == turn + 1; }))
        << process_.err() << process_.out();
  }
  ASSERT_TRUE(trains_on()) << process_.err() << process_.out();
  // Three of four at once.
  const auto ranks = all_ranks();
  ASSERT_EQ(ranks.size(), 4U);
  for (const size_t victim : {0, 1, 3}) kill(ranks[victim].pid, SIGKILL);
  ASSERT_TRUE(trains_on()) << process_.err() << process_.out();
  // While it recovers: always the newest one, as the others hold the state.
  for (int turn = 0; turn < kKillsOfNewest; ++turn) {
    const auto now = all_ranks();
    ASSERT_EQ(now.size(), 4U);
    kill(std::ranges::max(now, {}, &RankProcess::started).pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
  }
  expect_undisturbed(kKills + 3 + kKillsOfNewest);
}

TEST_F(RecoveryFromMemory, WhatARankReportsItselfEndsTheJob) {
  Training failing = training("run", 2);
  failing.flags = failing.flags + Words{"--host_memory", "--memory_sample=9"};
  const ProcessResult result =
      run(command_of(failing) + Words{"--recover", "memory"},
          process_options(failing));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(count(result.err, kReplaced), 0) << result.err;
}

TEST_F(RecoveryFromMemory, WhenAllRanksDieTheJobHasFailed) {
  const Training training{.world = 2,
                          .folder = temp_.path() / "run",
                          .flags = {"--n_steps=100000", "--log_every=50"}};
  Process process(command_of(training) + Words{"--recover", "memory"},
                  process_options(training));
  ASSERT_TRUE(process.wait_for_output("step 50/"));
  for (const auto& rank : ranks_of(process)) kill(rank.pid, SIGSTOP);
  for (const auto& rank : ranks_of(process)) kill(rank.pid, SIGKILL);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
}

TEST_F(RecoveryFromMemory, IsRefusedWhereARankCouldNotBeReplaced) {
  Training sharded = training("run", 2);
  sharded.flags.emplace_back("--shard_optimizer");
  const ProcessResult result =
      run(command_of(sharded) + Words{"--recover", "memory"},
          process_options(sharded));
  EXPECT_NE(result.exit_code, 0);
  expect_in(result.err, "--recover memory: with --shard_optimizer");
}

}  // namespace
}  // namespace lockstep::testing
