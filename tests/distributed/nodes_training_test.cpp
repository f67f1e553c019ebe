// Trainings on several machines.
#include <csignal>
#include <filesystem>
#include <sstream>

#include "distributed/nodes.h"
#include "lockstep/base/files.h"

namespace lockstep {
namespace {

using testing::expect_in;
using testing::Ipv6Nodes;
using testing::kNodes;
using testing::Nodes;
using testing::ProcessOptions;
using testing::ProcessResult;
using testing::Words;
using testing::operator+;

// The weights as a file without names and times of the run.
std::string weights_of(const std::filesystem::path& folder,
                       const ProcessOptions& options) {
  const std::string target = (folder / "weights.safetensors").string();
  const ProcessResult result =
      testing::run({LOCKSTEP_PROGRAM, "export",
                    (folder / "checkpoint_step_12.pt").string(), target},
                   options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return base::read_file(target);
}

Words training(const std::string& folder) {
  return {"tiny", "--save_dir",      folder, "--n_steps",
          "12",   "--train_samples", "96",   "--val_samples",
          "20",   "--batch_size",    "4"};
}

Words as_training(Words command, const Words& rest) {
  command[1] = "train";
  return command + rest;
}

TEST_F(Nodes, TrainToTheBitsOfOneNode) {
  const std::string alone = (folder_.path() / "alone").string();
  const ProcessResult single = testing::run(
      Words{LOCKSTEP_PROGRAM, "train", "--nproc=6"} + training(alone),
      options());
  ASSERT_EQ(single.exit_code, 0) << single.err;
  const std::string expected = weights_of(alone, options());
  const std::string joined = (folder_.path() / "joined").string();
  start_all(as_training(join(), training(joined)));
  for (const ProcessResult& result : wait_for_all()) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(weights_of(joined, options()), expected);
  const std::string numbered = (folder_.path() / "numbered").string();
  for (int node = 0; node < kNodes; ++node) {
    start(node, as_training(fixed(node), training(numbered)));
  }
  for (const ProcessResult& result : wait_for_all()) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(weights_of(numbered, options()), expected);
}

// The weights before the last batch of each rank, from the records of the
// recipe of the tests.
Words last_batches(const std::string& folder) {
  Words last;
  for (int rank = 0; rank < 6; ++rank) {
    std::istringstream lines(base::read_file(folder + ".record/rank_" +
                                             std::to_string(rank) + ".txt"));
    std::string found;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("train")) found = line;
    }
    last.push_back(found);
  }
  return last;
}

Words probe(const std::string& folder) {
  std::filesystem::create_directories(folder + ".record");
  return {PROBE_WORKER,
          "train",
          "probe",
          "--device",
          "cpu",
          "--epochs",
          "3",
          "--batch_size",
          "2",
          "--save_every",
          "2",
          "--save_dir",
          folder,
          "--record",
          folder + ".record"};
}

TEST_F(Ipv6Nodes, TrainToTheBitsOfOneNodeAlsoAfterARestart) {
  const std::string alone = (folder_.path() / "alone").string();
  const ProcessResult single = testing::run(
      Words{LOCKSTEP_PROGRAM, "run", "--nproc=6"} + probe(alone), options());
  ASSERT_EQ(single.exit_code, 0) << single.err;
  const std::string folder = (folder_.path() / "run").string();
  // All ranks stop at their fourth batch, where one is killed.
  start_all(join(Words{"--max-restarts=1"} + probe(folder) +
                 Words{"--pause_in", "train", "--pause_call", "3"}));
  const auto pid_of_paused = [&](int rank) {
    return base::try_read_file(folder + ".record/paused_" +
                               std::to_string(rank))
        .value_or("");
  };
  ASSERT_TRUE(testing::wait_for(
      [&] {
        for (int rank = 0; rank < 6; ++rank) {
          if (pid_of_paused(rank).empty()) return false;
        }
        return true;
      },
      120))
      << processes_[0]->err();
  kill(std::stoi(pid_of_paused(4)), SIGKILL);
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.err, "rank 4 on host2 (node 2) failed");
  }
  EXPECT_EQ(last_batches(folder), last_batches(alone));
  EXPECT_NE(last_batches(alone)[5], "");
}

TEST_F(Ipv6Nodes, MeetAtTheMaster) {
  for (int node = 0; node < kNodes; ++node) {
    start(node, fixed(node, {EXAMPLES_FOLDER "/01_all_reduce"}));
  }
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.out, "of 6: the sum is 21");
  }
}

}  // namespace
}  // namespace lockstep
