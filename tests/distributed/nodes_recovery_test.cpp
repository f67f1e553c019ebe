// Ranks and nodes of a job on several machines die, come and leave, and the
// training goes on from the memory of the others (--recover memory).
#include <csignal>
#include <filesystem>

#include "distributed/nodes.h"
#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kPatience = 200;  // The machine may be busy.
constexpr const char* kKept = "the ranks that live keep their state";
constexpr const char* kWentOn =
    "4 ranks go on with their state after step 3: nothing is repeated";
constexpr int kRanks = 6;
// Starts at once with the nodes that are there.
const Words kAtOnce = {
    "--rdzv-conf=join_timeout=120,last_call_timeout=0.1,keep_alive_interval=1,"
    "keep_alive_max_attempt=60"};

class NodesRecovery : public Nodes {
 protected:
  NodesRecovery() { fs::create_directory(record()); }

  fs::path record() const { return folder_.path() / "record"; }
  fs::path run_folder() const { return folder_.path() / "run"; }

  // A rank of the number has stopped within a batch.
  pid_t pid_of_paused(int rank) const {
    const fs::path path = record() / ("paused_" + std::to_string(rank));
    const auto text = [&] { return base::try_read_file(path).value_or(""); };
    if (!wait_for([&] { return !text().empty(); }, kPatience)) return 0;
    return static_cast<pid_t>(
        base::parse_integer(base::trim(text())).value_or(0));
  }

  void expect_paused(int num_ranks) const {
    for (int rank = 0; rank < num_ranks; ++rank) {
      ASSERT_GT(pid_of_paused(rank), 0) << processes_[0]->err();
    }
  }

  void go_on() const { folder_.write("record/go", ""); }

  Words pausing(int call) const {
    return {"--record", record().string(), "--pause_in=train",
            "--pause_call=" + std::to_string(call)};
  }

  Words probe(const fs::path& folder, const Words& flags) const {
    return Words{PROBE_WORKER, "train", "probe", "--save_dir",
                 folder.string()} +
           flags;
  }
};

// Three nodes, always.
class FixedNodesRecovery : public NodesRecovery {
 protected:
  // What a rank must not lose: dropout's generator, batch statistics, averages.
  const Words kFlags = {
      "--device=cpu",    "--batch_size=2", "--epochs=4",
      "--dropout=0.3",   "--batch_norm",   "--own_normaliser",
      "--ema_decay=0.9", "--log_every=2",  "--sample_every=5"};

  Words recovering(const Words& more) const {
    return join({"--recover", "memory"}) + probe(run_folder(), kFlags + more);
  }

  void expect_undisturbed() {
    const fs::path whole = folder_.path() / "whole";
    start_all(join() + probe(whole, kFlags));
    for (const ProcessResult& result : wait_for_all()) {
      ASSERT_EQ(result.exit_code, 0) << result.err;
    }
    expect_equal(learned(last_checkpoint(run_folder())),
                 learned(last_checkpoint(whole)));
    EXPECT_EQ(metric_lines(run_folder()), metric_lines(whole));
    EXPECT_EQ(files_below(run_folder() / "samples"),
              files_below(whole / "samples"));
  }
};

TEST_F(FixedNodesRecovery, KilledRanksAreReplacedWithTheSameBits) {
  start_all(recovering(pausing(3)));
  expect_paused(kRanks);
  ASSERT_EQ(kill(pid_of_paused(3), SIGKILL), 0);
  ASSERT_TRUE(says(*processes_[0], kKept)) << processes_[0]->err();
  ASSERT_EQ(kill(pid_of_paused(0), SIGKILL), 0);
  ASSERT_TRUE(says(*processes_[0], "rank 0 (pid ")) << processes_[0]->err();
  go_on();
  const auto results = wait_for_all();
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.err, "on host1 (node 1) died by SIGKILL");
  }
  expect_in(results[0].out, "nothing is repeated");
  expect_undisturbed();
}

// Rank 0 has not done the step that the others have: they tell what it alone
// knew, and give back its batch statistics, not theirs.
TEST_F(FixedNodesRecovery, Rank0MayDieWithinItsUpdate) {
  start_all(recovering({"--record", record().string(), "--pause_in=update",
                        "--pause_call=7", "--late_rank=0"}));
  ASSERT_GT(pid_of_paused(0), 0) << processes_[0]->err();
  for (int rank = 1; rank < kRanks; ++rank) {
    const fs::path done = record() / ("updated_" + std::to_string(rank));
    ASSERT_TRUE(wait_for([&] { return fs::exists(done); }, kPatience)) << done;
  }
  ASSERT_EQ(kill(pid_of_paused(0), SIGKILL), 0);
  const auto results = wait_for_all();
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_in(results[0].out, "nothing is repeated");
  expect_undisturbed();
}

TEST_F(FixedNodesRecovery, ANodeThatComesBackGetsTheStateOfItsRanks) {
  const Words command = recovering(pausing(3));
  start_all(command);
  expect_paused(kRanks);
  processes_[1]->send(SIGKILL);
  processes_[1]->wait();
  EXPECT_TRUE(wait_until_gone(processes_[1]->marker(), 60).empty());
  ASSERT_TRUE(says(*processes_[0], kKept)) << processes_[0]->err();
  processes_.erase(processes_.begin() + 1);
  go_on();
  start(1, command);
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_undisturbed();
}

// Nobody can host it: the job ends, and says so once.
TEST_F(FixedNodesRecovery, WithoutItsHostTheJobEnds) {
  start_all(recovering(pausing(3)));
  expect_paused(kRanks);
  processes_[0]->send(SIGKILL);
  go_on();
  const auto results = wait_for_all();
  for (const int host : {1, 2}) {
    const std::string& err = results[static_cast<size_t>(host)].err;
    EXPECT_EQ(results[static_cast<size_t>(host)].exit_code, 5) << err;
    expect_in(err, "No process of the job is left on this node");
    expect_not_in(err, kKept);
    EXPECT_EQ(err.find("the job has ended there"),
              err.rfind("the job has ended there"))
        << err;
  }
}

// The one that runs out lets go of the others, and all connect anew.
TEST_F(FixedNodesRecovery, AllHalveTheirBatchWhenOneRunsOutOfMemory) {
  const Words flags = {"--device=cpu", "--batch_size=4",
                       "--n_steps=12", "--log_every=1",
                       "--lr=0.01",    "--val_every_epochs=0"};
  const auto losses = [](const fs::path& folder) {
    return metric(folder, "train/loss");
  };
  const fs::path whole = folder_.path() / "whole";
  start_all(join() + probe(whole, flags));
  for (const ProcessResult& result : wait_for_all()) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  start_all(
      join({"--recover", "memory"}) +
      probe(run_folder(), flags + Words{"--on_oom=halve", "--memory_steps=3",
                                        "--memory_rank=3"}));
  std::string said;
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    said += result.out + result.err;
  }
  expect_in(said, "the batch per process is halved from 4 to 2");
  expect_close(losses(run_folder()), losses(whole), 1e-6);
}

// Two to three nodes. 45 samples in batches of 10: 5 steps per epoch, the last
// one smaller. Neither 4 nor 6 ranks have equally many samples of a step.
class ElasticNodesRecovery : public NodesRecovery {
 protected:
  const Words kFlags = {
      "--device=cpu",       "--precision=fp64", "--global_batch_size=10",
      "--train_samples=45", "--epochs=3",       "--log_every=2",
      "--save_every=1000"};

  Words elastic(const Words& more = {}) const {
    Words command = join(Words{"--recover", "memory"} + more);
    command[2] = "--nnodes=2:3";
    return command +
           probe(run_folder(), kFlags + pausing(3) +
                                   Words{"--lr=0.01", "--lr_scaling=linear"});
  }

  // All are told before they go on: no step is under way on some of them.
  void expect_told(const std::vector<int>& processes, const std::string& text) {
    for (const int i : processes) {
      ASSERT_TRUE(says(*processes_[static_cast<size_t>(i)], text))
          << processes_[static_cast<size_t>(i)]->err();
    }
  }

  // The same training on one process, with the learning rate of so many. None
  // of its steps was done twice: the records have one line for each.
  void expect_undisturbed(int num_scaled) {
    const fs::path alone = folder_.path() / "alone";
    const ProcessResult result =
        run(probe(alone,
                  kFlags + Words{"--lr=" + std::to_string(0.01 * num_scaled)}),
            options());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    for (const char* name : {"train/loss", "val/loss", "train/learning_rate"}) {
      SCOPED_TRACE(name);
      const auto expected = metric(alone, name);
      EXPECT_FALSE(expected.empty());
      expect_close(metric(run_folder(), name), expected, 1e-10);
    }
  }
};

TEST_F(ElasticNodesRecovery, ANodeThatComesLaterGetsTheState) {
  for (const int host : {0, 1}) start(host, elastic(kAtOnce));
  expect_paused(4);
  // Its ranks do not wait.
  for (const char* name : {"paused_4", "paused_5"}) {
    folder_.write(std::string("record/") + name, "1");
  }
  start(2, elastic(kAtOnce));
  expect_told({0, 1}, kKept);
  go_on();
  const auto results = wait_for_all();
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_in(results[0].err, "host2 joins");
  expect_in(results[0].out, "rank(s) 4, 5 have been started");
  expect_undisturbed(4);
}

TEST_F(ElasticNodesRecovery, ANodeThatIsAskedToEndLeavesTheState) {
  start_all(elastic());
  expect_paused(kRanks);
  processes_[1]->send(SIGTERM);
  expect_told({0, 2}, kKept);
  go_on();
  const auto results = wait_for_all();
  EXPECT_EQ(results[1].exit_code, 128 + SIGTERM) << results[1].err;
  for (const int host : {0, 2}) {
    EXPECT_EQ(results[host].exit_code, 0) << results[host].err;
  }
  expect_in(results[0].out, kWentOn);
  expect_undisturbed(6);
}

// As when a batch system ends a job of many nodes.
TEST_F(ElasticNodesRecovery, WhenAllAreAskedToEndTheTrainingIsSaved) {
  start_all(elastic());
  expect_paused(kRanks);
  for (const auto& process : processes_) process->send(SIGTERM);
  expect_told({0, 1, 2}, "another node received SIGTERM");
  go_on();
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  }
  EXPECT_GE(last_checkpoint(run_folder()).at("global_step").as_int(), 4);
}

TEST_F(ElasticNodesRecovery, TheHostOfTheJobMayBeLost) {
  start_all(elastic());
  expect_paused(kRanks);
  processes_[0]->send(SIGKILL);
  expect_told({1, 2}, "the others");
  go_on();
  const auto results = wait_for_all();
  for (const int host : {1, 2}) {
    EXPECT_EQ(results[host].exit_code, 0) << results[host].err;
  }
  // Rank 0 is one that was not.
  expect_in(results[1].out, kWentOn);
  expect_undisturbed(6);
}

// Ranks that wait for a machine which has fallen silent are told to stop.
TEST_F(ElasticNodesRecovery, TheLargerSideOfABrokenNetworkGoesOn) {
  start_all(
      elastic({"--rdzv-conf=join_timeout=120,keep_alive_interval=1,"
               "keep_alive_max_attempt=12,last_call_timeout=300"}));
  expect_paused(kRanks);
  hosts_.cut(0);
  go_on();
  const auto results = wait_for_all();
  EXPECT_EQ(results[0].exit_code, 5) << results[0].err;
  expect_in(results[0].err,
            "they may go on without this side, so the job ends here");
  for (const int host : {1, 2}) {
    EXPECT_EQ(results[host].exit_code, 0) << results[host].err;
  }
  expect_in(results[1].out, kWentOn);
  expect_undisturbed(6);
}

TEST_F(ElasticNodesRecovery, ANodeThatIsKilledIsGoneOnWithout) {
  start_all(elastic());
  expect_paused(kRanks);
  processes_[2]->send(SIGKILL);
  expect_told({0, 1}, kKept);
  go_on();
  const auto results = wait_for_all();
  for (const int host : {0, 1}) {
    EXPECT_EQ(results[host].exit_code, 0) << results[host].err;
  }
  expect_in(results[0].out, kWentOn);
  expect_undisturbed(6);
}

}  // namespace
}  // namespace lockstep::testing
