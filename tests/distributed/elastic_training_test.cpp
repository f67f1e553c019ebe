// Trainings whose number of nodes changes are the training that did not change.
#include <csignal>
#include <filesystem>

#include "distributed/nodes.h"
#include "distributed/training.h"
#include "lockstep/base/files.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

// 45 samples in batches of 10: 5 steps per epoch, the last one smaller. Neither
// 4 nor 6 ranks have equally many samples of a step.
const Words kFlags = {
    "--device=cpu",       "--precision=fp64", "--global_batch_size=10",
    "--train_samples=45", "--epochs=3",       "--log_every=2",
    "--save_every=1000"};
// Starts at once with the nodes that are there.
const Words kAtOnce = {
    "--rdzv-conf=join_timeout=120,last_call_timeout=0.1,keep_alive_interval=1,"
    "keep_alive_max_attempt=60"};

class ElasticTraining : public Nodes {
 protected:
  Words training(const std::string& name, const Words& more = {}) const {
    const fs::path folder = folder_.path() / name;
    fs::create_directories(folder.string() + ".record");
    return Words{PROBE_WORKER,
                 "train",
                 "probe",
                 "--save_dir",
                 folder,
                 "--record",
                 folder.string() + ".record"} +
           kFlags + more;
  }

  // Waits in its fourth batch for the signal that ends it.
  Words elastic(const Words& more = {}) const {
    Words command = join(more);
    command[2] = "--nnodes=2:3";
    return command + training("run", {"--lr=0.01", "--lr_scaling=linear",
                                      "--pause_in=train", "--pause_call=3"});
  }

  bool wait_until_paused(int num_ranks) const {
    return wait_for(
        [&] {
          for (int rank = 0; rank < num_ranks; ++rank) {
            if (!fs::exists(folder_.path() / "run.record" /
                            ("paused_" + std::to_string(rank)))) {
              return false;
            }
          }
          return true;
        },
        120);
  }

  // The same training on one process, with the learning rate of so many.
  void expect_undisturbed(int num_scaled) {
    const ProcessResult alone =
        run(training("alone", {"--lr=" + std::to_string(0.01 * num_scaled)}),
            options());
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    for (const char* name : {"train/loss", "val/loss", "train/learning_rate"}) {
      SCOPED_TRACE(name);
      const auto expected = metric(folder_.path() / "alone", name);
      EXPECT_FALSE(expected.empty());
      expect_close(metric(folder_.path() / "run", name), expected, 1e-10);
    }
  }
};

TEST_F(ElasticTraining, ANodeThatComesLaterTakesItsShare) {
  for (const int host : {0, 1}) start(host, elastic(kAtOnce));
  ASSERT_TRUE(wait_until_paused(4)) << processes_[0]->err();
  // Its ranks do not wait.
  for (const char* name : {"paused_4", "paused_5"}) {
    folder_.write(std::string("run.record/") + name, "");
  }
  start(2, elastic(kAtOnce));
  const auto results = wait_for_all();
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_in(results[0].err, "host2 joins");
  expect_undisturbed(4);
}

TEST_F(ElasticTraining, ANodeThatIsAskedToEndHandsItsShareOver) {
  start_all(elastic());
  ASSERT_TRUE(wait_until_paused(6)) << processes_[0]->err();
  processes_[1]->send(SIGTERM);
  const auto results = wait_for_all();
  EXPECT_EQ(results[1].exit_code, 128 + SIGTERM) << results[1].err;
  for (const int host : {0, 2}) {
    EXPECT_EQ(results[host].exit_code, 0) << results[host].err;
  }
  expect_undisturbed(6);
}

TEST_F(ElasticTraining, GoesOnWithoutANodeThatIsKilled) {
  start_all(elastic());
  ASSERT_TRUE(wait_until_paused(6)) << processes_[0]->err();
  processes_[2]->send(SIGKILL);
  const auto results = wait_for_all();
  for (const int host : {0, 1}) {
    EXPECT_EQ(results[host].exit_code, 0) << results[host].err;
  }
  expect_undisturbed(6);
}

}  // namespace
}  // namespace lockstep::testing
