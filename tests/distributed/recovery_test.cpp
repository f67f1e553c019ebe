// Ranks are killed, and the training goes on from the memory of the others:
// with the bits and the records of an undisturbed one.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "support/messages.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

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

class RecoveryAt : public RecoveryFromMemory,
                   public ::testing::WithParamInterface<Moment> {};

TEST_P(RecoveryAt, GoesOnWithTheSameBits) {
  const Moment& moment = GetParam();
  constexpr int kWorld = 3;
  const Training whole = undisturbed(kWorld);
  fs::create_directory(record());
  Training killed = training("killed", kWorld);
  killed.flags =
      killed.flags + Words{"--record",     record().string(),
                           "--pause_in",   moment.phase,
                           "--pause_call", std::to_string(moment.call)};
  Words command = command_of(killed) + Words{"--recover", "memory"};
  ProcessOptions options = process_options(killed);
  options.environment["LOCKSTEP_EXCHANGE"] = moment.exchange;
  Process process(command, options);
  const fs::path paused =
      record() / ("paused_" + std::to_string(moment.victim));
  ASSERT_TRUE(wait_for(
      [&] { return base::try_read_file(paused).value_or("") != ""; }, 200))
      << process.err();
  const pid_t pid = static_cast<pid_t>(
      *base::parse_integer(base::trim(base::read_file(paused))));
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  std::ofstream(record() / "go") << "go";
  const ProcessResult result = process.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(count(result.err, kReplaced), 1) << result.err;
  expect_in(result.out + result.err, "nothing is repeated");
  expect_same(killed, whole);
}

INSTANTIATE_TEST_SUITE_P(Moments, RecoveryAt,
                         ::testing::Values(Moment{"train", 0, 1, "shared"},
                                           Moment{"train", 7, 0, "shared"},
                                           Moment{"train", 7, 2, "gloo"},
                                           Moment{"validate", 0, 1, "shared"},
                                           Moment{"validate", 1, 0, "gloo"},
                                           Moment{"sample", 1, 0, "shared"},
                                           Moment{"sample", 1, 2, "shared"}));

// Living processes of the training's ranks.
std::vector<pid_t> ranks_of(const Process& process) {
  std::vector<pid_t> ranks;
  for (const pid_t pid : find_marked(process.marker())) {
    const auto text =
        base::try_read_file("/proc/" + std::to_string(pid) + "/cmdline");
    if (text && text->substr(0, text->find('\0')).ends_with("-worker")) {
      ranks.push_back(pid);
    }
  }
  return ranks;
}

class KilledTraining : public RecoveryFromMemory {
 protected:
  KilledTraining()
      : whole_{.world = 4,
               .folder = temp_.path() / "whole",
               .flags = {"--n_steps=2000", "--log_every=50",
                         "--val_every=100"}},
        killed_(whole_) {
    killed_.folder = temp_.path() / "killed";
  }

  Words command() const {
    return command_of(killed_) + Words{"--recover", "memory"};
  }

  static bool wait_for_recoveries(const Process& process, int number) {
    return wait_for(
        [&] {
          return count(process.out(), "nothing is repeated") >= number ||
                 ranks_of(process).empty();
        },
        200);
  }

  // Returns how often a rank was replaced.
  int expect_undisturbed(Process& process) const {
    const ProcessResult result = process.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
    if (result.exit_code != 0) return 0;
    run_well(whole_);
    expect_same(killed_, whole_);
    return count(result.err, kReplaced);
  }

  Training whole_;
  Training killed_;
};

TEST_F(KilledTraining, AtRandomMomentsHasTheSameBits) {
  constexpr int kKills = 6;
  Process process(command(), process_options(killed_));
  std::mt19937 random(4);
  ASSERT_TRUE(process.wait_for_output("step 50/"));
  for (int turn = 0; turn < kKills; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    const auto ranks = ranks_of(process);
    ASSERT_EQ(ranks.size(), 4U) << "it has ended: train for more steps";
    kill(ranks[random() % ranks.size()], SIGKILL);
    ASSERT_TRUE(wait_for_recoveries(process, turn + 1));
  }
  EXPECT_EQ(expect_undisturbed(process), kKills);
}

TEST_F(KilledTraining, InThreeOfFourRanksAtOnceHasTheSameBits) {
  Process process(command(), process_options(killed_));
  ASSERT_TRUE(process.wait_for_output("step 50/"));
  const auto ranks = ranks_of(process);
  ASSERT_EQ(ranks.size(), 4U);
  for (const size_t victim : {0, 1, 3}) kill(ranks[victim], SIGKILL);
  EXPECT_EQ(expect_undisturbed(process), 3);
}

TEST_F(KilledTraining, WhileItRecoversHasTheSameBits) {
  constexpr int kKills = 5;
  Process process(command(), process_options(killed_));
  std::mt19937 random(5);
  ASSERT_TRUE(process.wait_for_output("step 50/"));
  // Always the newest one: the others hold the state.
  for (int turn = 0; turn < kKills; ++turn) {
    const auto ranks = ranks_of(process);
    ASSERT_FALSE(ranks.empty());
    kill(std::ranges::max(ranks), SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
  }
  EXPECT_GE(expect_undisturbed(process), 2);
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
  for (const pid_t pid : ranks_of(process)) kill(pid, SIGSTOP);
  for (const pid_t pid : ranks_of(process)) kill(pid, SIGKILL);
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
