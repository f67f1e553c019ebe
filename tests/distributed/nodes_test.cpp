// What launchers of several machines do when nodes come, fail and go.
#include "distributed/nodes.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

namespace lockstep {
namespace {

using testing::expect_in;
using testing::Nodes;
using testing::Process;
using testing::ProcessResult;
using testing::shell;
using testing::Words;
using testing::operator+;

constexpr int kNodes = testing::kNodes;
constexpr const char* kPlace =
    "echo node $GROUP_RANK of $GROUP_WORLD_SIZE on $(hostname): rank $RANK of "
    "$WORLD_SIZE, local $LOCAL_RANK, attempt $TORCHELASTIC_RESTART_COUNT";

bool has_lines(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return static_cast<bool>(std::getline(file, line));
}

// Every rank marks itself, then waits to be ended.
const std::string kStay = "echo up $RANK; exec sleep 1000";

TEST_F(Nodes, JoinInAnyOrderAndGetRanksByName) {
  for (const int host : {2, 1, 0}) start(host, join(shell(kPlace)));
  const auto results = wait_for_all();
  for (int i = 0; i < kNodes; ++i) {
    const std::string node = std::to_string(2 - i);
    EXPECT_EQ(results[i].exit_code, 0) << results[i].err;
    expect_in(results[i].out, "node " + node + " of 3 on host" + node +
                                  ": rank " + std::to_string(2 * (2 - i)) +
                                  " of 6, local 0, attempt 0");
  }
}

TEST_F(Nodes, WithNumbersMeetAtTheMaster) {
  // The host of the store is node 0, whatever its name.
  for (const int node : {1, 2, 0}) start(node, fixed(node, shell(kPlace)));
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_in(ended_[0]->out(),
            "node 1 of 3 on host1: rank 3 of 6, local 1, attempt 0");
}

TEST_F(Nodes, AreWaitedFor) {
  const Process& first = start(0, join(shell(kPlace)));
  start(1, join(shell(kPlace)));
  ASSERT_TRUE(says(first, "waiting for 3 nodes")) << first.err();
  EXPECT_EQ(first.out(), "");
  start(2, join(shell(kPlace)));
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST_F(Nodes, ThatNeverComeAreSaid) {
  // The first looks for the host while that one's time begins.
  const Process& first = start(2, join({"true"}));
  ASSERT_TRUE(says(first, "joining 3 nodes")) << first.err();
  start(0, join({"--rdzv-conf=join_timeout=8", "true"}));
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 6);
    expect_in(result.err, "waited 8.0 s for 3 nodes, 2 came (host0, host2)");
  }
}

TEST_F(Nodes, WithoutMasterSaySo) {
  start(1, join({"--rdzv-conf=join_timeout=2", "true"}));
  start(2, fixed(2, {"--rdzv-conf=join_timeout=2", "true"}));
  const auto results = wait_for_all();
  EXPECT_EQ(results[0].exit_code, 6);
  expect_in(
      results[0].err,
      "no launcher of this job was found at 10.77.0.1:29400 within 2.0 s");
  EXPECT_EQ(results[1].exit_code, 6);
  expect_in(results[1].err, "node 0 was not found at 10.77.0.1:29500");
}

TEST_F(Nodes, EndTogetherAndNameTheRankThatFailed) {
  start_all(join(
      shell("if [ $RANK = 3 ]; then echo broken >&2; exit 9; fi; " + kStay)));
  const auto results = wait_for_all();
  expect_same_report(results);
  EXPECT_EQ(results[0].exit_code, 9);
  for (const char* part :
       {"host      : host1 (node 1)", "rank      : 3 (local_rank: 1)",
        "exitcode  : 9", "broken"}) {
    expect_in(report_in(results[2].err), part);
  }
}

TEST_F(Nodes, StartAgainTogether) {
  start_all(
      join(Words{"--max-restarts=1"} +
           shell("if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then echo again "
                 "$RANK; exit 0; fi; "
                 "if [ $RANK = 5 ]; then exit 3; fi; " +
                 kStay)));
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.err,
              "rank 5 on host2 (node 2) failed (exit code 3); all 6 processes "
              "start again (restart 1 of 1)");
    expect_in(result.out, "again ");
  }
}

TEST_F(Nodes, AreEndedWhenOneIsKilled) {
  start_all(join(shell(kStay)));
  expect_up();
  processes_[1]->send(SIGKILL);
  auto results = wait_for_all();
  results.erase(results.begin() + 1);
  expect_same_report(results);
  EXPECT_EQ(results[0].exit_code, 5);
  expect_in(report_in(results[0].err), "lost      : the whole node, ranks 2-3");
  expect_in(report_in(results[0].err),
            "host1 (node 1) is lost: its connection closed");
  EXPECT_TRUE(testing::wait_until_gone(ended_[1]->marker(), 60).empty());
}

TEST_F(Nodes, LetAKilledOneComeBack) {
  const Words command =
      join(Words{"--max-restarts=1"} +
           shell("if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then echo again "
                 "$RANK; exit 0; fi; " +
                 kStay));
  start_all(command);
  expect_up();
  processes_[1]->send(SIGKILL);
  processes_[1]->wait();
  Process& replacement = start(1, command);
  EXPECT_EQ(replacement.wait().exit_code, 0) << replacement.err();
  expect_in(replacement.out(), "again 2");
  EXPECT_EQ(processes_[0]->wait().exit_code, 0);
  EXPECT_EQ(processes_[2]->wait().exit_code, 0);
  expect_in(processes_[0]->err(), "host1 (node 1) is lost");
}

TEST_F(Nodes, WithNumbersLetAKilledOneComeBack) {
  const Words rest =
      Words{"--max-restarts=1"} +
      shell(
          "if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then echo again $RANK; "
          "exit 0; fi; " +
          kStay);
  for (int host = 0; host < kNodes; ++host) start(host, fixed(host, rest));
  expect_up();
  processes_[1]->send(SIGKILL);
  processes_[1]->wait();
  Process& replacement = start(1, fixed(1, rest));
  EXPECT_EQ(replacement.wait().exit_code, 0) << replacement.err();
  expect_in(replacement.out(), "again 3");
  EXPECT_EQ(processes_[0]->wait().exit_code, 0);
}

TEST_F(Nodes, EndWhenTheirHostIsKilled) {
  start_all(join(shell(kStay)));
  expect_up();
  processes_[0]->send(SIGKILL);
  const auto results = wait_for_all();
  for (int node = 1; node < kNodes; ++node) {
    EXPECT_EQ(results[node].exit_code, 5);
    expect_in(results[node].err,
              "the connection to the host of the job (10.77.0.1:29400) broke");
  }
}

TEST_F(Nodes, NoticeACableThatIsCut) {
  start_all(join(Words{testing::kQuick} + shell(kStay)));
  expect_up();
  hosts_.cut(2);
  const auto results = wait_for_all();
  EXPECT_EQ(report_in(results[0].err), report_in(results[1].err));
  expect_in(report_in(results[0].err),
            "host2 (node 2) is lost: no sign of life for 5.0 s");
  EXPECT_EQ(results[2].exit_code, 5);
  expect_in(results[2].err, "broke: no sign of life for 5.0 s");
}

TEST_F(Nodes, NoticeACableThatIsCutOneWay) {
  start_all(join(Words{testing::kQuick} + shell(kStay)));
  expect_up();
  hosts_.cut_outgoing(1);
  const auto results = wait_for_all();
  EXPECT_EQ(results[0].exit_code, 5);
  expect_in(report_in(results[0].err), "host1 (node 1) is lost");
  EXPECT_EQ(results[1].exit_code, 5) << results[1].err;
}

// Ranks exchange gradients over Gloo when one host is cut off in one direction.
class TrainingNodes : public Nodes {
 protected:
  void start_training() {
    const std::string folder = (folder_.path() / "run").string();
    Words command = join({testing::kQuick, "--nproc=1", "tiny", "--n_steps",
                          "1000000", "--save_dir", folder});
    command[1] = "train";
    start_all(command);
    const std::string records = folder + "/metrics.jsonl";
    ASSERT_TRUE(testing::wait_for([&] { return has_lines(records); }, 120))
        << processes_[0]->err();
  }

  void expect_loss_of_host1() {
    auto results = wait_for_all();
    // It gets no report, and may hear first that its ranks lost the others.
    EXPECT_NE(results[1].exit_code, 0);
    expect_in(results[1].err, "(10.77.0.1:29400) broke: ");
    results.erase(results.begin() + 1);
    expect_same_report(results);
    EXPECT_EQ(results[0].exit_code, 5) << results[0].err;
    expect_in(report_in(results[0].err), "host1 (node 1) is lost");
    for (const auto& process : ended_) {
      EXPECT_TRUE(testing::wait_until_gone(process->marker(), 60).empty());
    }
  }
};

TEST_F(TrainingNodes, NoticeThatOneHearsNothing) {
  start_training();
  hosts_.cut_incoming(1);
  expect_loss_of_host1();
}

TEST_F(TrainingNodes, NoticeThatOneIsNotHeard) {
  start_training();
  hosts_.cut_outgoing(1);
  expect_loss_of_host1();
}

TEST_F(Nodes, SurviveACableThatIsMendedInTime) {
  const std::string go = folder_.path().string() + "/go";
  // However long cutting and mending take.
  start_all(join(
      Words{"--rdzv-conf=keep_alive_interval=0.5,keep_alive_max_attempt=400"} +
      shell("echo up $RANK; while [ ! -e " + go + " ]; do sleep 0.1; done")));
  expect_up();
  hosts_.cut(2);
  hosts_.mend(2);
  folder_.write("go", "");
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST_F(Nodes, WithAnotherSecretOrIdCannotJoin) {
  const std::string other =
      folder_.write("other.secret", "another secret, also long enough");
  chmod(other.c_str(), 0600);
  Process& host = start(0, join(shell(kPlace)));
  Words command = join(shell(kPlace));
  Words wrong = command;
  std::replace(wrong.begin(), wrong.end(), secret_, other);
  const ProcessResult refused = testing::run(hosts_.on(1, wrong), options());
  EXPECT_EQ(refused.exit_code, 2);
  expect_in(refused.err, "the launcher there has another secret");
  wrong = command;
  std::replace(wrong.begin(), wrong.end(), std::string("job"),
               std::string("another"));
  const ProcessResult other_job = testing::run(hosts_.on(1, wrong), options());
  EXPECT_EQ(other_job.exit_code, 2);
  expect_in(other_job.err, "another job is there (its --rdzv-id differs)");
  start(1, command);
  start(2, command);
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_in(host.err(),
            "refused a connection at the launchers' port (from 10.77.0.2): a "
            "launcher with another secret");
}

TEST_F(Nodes, WithNumbersAgreeOnASecretOrDoNotMeet) {
  const Words with = {"--rdzv-secret-file", secret_};
  start(0, fixed(0, with + shell(kPlace)));
  start(2, fixed(2, with + shell(kPlace)));
  const ProcessResult refused =
      testing::run(hosts_.on(1, fixed(1, shell(kPlace))), options());
  EXPECT_EQ(refused.exit_code, 2);
  expect_in(refused.err,
            "node 0 and this node disagree about --rdzv-secret-file");
  start(1, fixed(1, with + shell(kPlace)));
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

// "10.77.0.1:29400" as the kernel shows it, without the port.
Words listeners_in(const std::string& table) {
  Words addresses;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string address;
    for (int i = 0; i < 4; ++i) words >> address;
    addresses.push_back(address.substr(0, address.rfind(':')));
  }
  return addresses;
}

TEST_F(Nodes, ListenAtTheOneAddressOfTheJob) {
  for (const bool has_numbers : {false, true}) {
    for (int host = 0; host < kNodes; ++host) {
      start(host, has_numbers ? fixed(host, shell(kStay)) : join(shell(kStay)));
    }
    expect_up();
    for (int host = 0; host < kNodes; ++host) {
      const ProcessResult sockets =
          testing::run(hosts_.on(host, {"ss", "-Hltn"}));
      ASSERT_EQ(sockets.exit_code, 0) << sockets.err;
      // The store and the launchers' port.
      EXPECT_EQ(listeners_in(sockets.out),
                host == 0 ? Words(2, "10.77.0.1") : Words());
    }
    processes_[0]->send(SIGTERM);
    wait_for_all();
  }
}

TEST_F(Nodes, RunTwoJobsSideBySide) {
  Words second = join(shell("echo second $RANK"));
  std::replace(second.begin(), second.end(), endpoint(),
               hosts_.address(0) + ":29401");
  start_all(join(shell("echo first $RANK")));
  start_all(second);
  const auto results = wait_for_all();
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].exit_code, 0) << results[i].err;
    expect_in(results[i].out, i < kNodes ? "first" : "second");
  }
}

TEST_F(Nodes, StopTogether) {
  start_all(join(shell(kStay)));
  expect_up();
  processes_[2]->send(SIGTERM);
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  }
  expect_in(ended_[0]->err(), "another node received SIGTERM");
}

TEST_F(Nodes, ForgetWhoWasStuckBeforeARestart) {
  start_all(join(
      Words{"--timeout=2", "--max-restarts=1"} +
      shell("if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exec " STATUS_WORKER
            " stuck; fi; sleep 6; echo again $RANK")));
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.out, "again ");
    expect_in(result.err, "(restart 1 of 1)");
  }
}

TEST_F(Nodes, NameAStalledRankOfAnotherNode) {
  // Also the time for six processes to load libtorch and to meet.
  start_all(join({"--timeout=20", FAULTS_WORKER, "stop", "4"}));
  const auto results = wait_for_all();
  expect_same_report(results);
  EXPECT_EQ(results[0].exit_code, 6) << results[0].err;
  const std::string report = report_in(results[1].err);
  expect_in(report, "Timeout: who waited and who kept the others waiting");
  expect_in(report, "stalled: rank 4 (pid ");
  expect_in(report, ") on host2 (node 2)");
  expect_in(report, "waiting: rank 0 (pid ");
}

}  // namespace
}  // namespace lockstep
