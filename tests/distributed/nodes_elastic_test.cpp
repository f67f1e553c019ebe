// What launchers of an elastic job (--nnodes MIN:MAX) do when nodes come and
// go.
#include <algorithm>
#include <csignal>

#include "distributed/nodes.h"

namespace lockstep {
namespace {

using testing::expect_in;
using testing::Process;
using testing::ProcessResult;
using testing::shell;
using testing::Words;
using testing::operator+;

// No node is lost by silence, and all three are waited for at the start.
const std::string kPatientConf =
    "--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=60,"
    "last_call_timeout=300";
// One that stays silent for so long is lost: both sides of a broken network
// must notice within that time of each other.
const std::string kQuickConf =
    "--rdzv-conf=join_timeout=120,keep_alive_interval=1,"
    "keep_alive_max_attempt=12,last_call_timeout=300";
const std::string kLastCall = ",last_call_timeout=1";

class ElasticNodes : public testing::Nodes {
 protected:
  // Every rank marks each of its starts, then waits for the file "done".
  Words elastic(const std::string& conf, const Words& more = {}) const {
    return join(
        Words{"--nnodes=2:3", conf} + more +
        shell("echo up $TORCHELASTIC_RESTART_COUNT $RANK of $WORLD_SIZE; "
              "while [ ! -e " +
              folder_.path().string() + "/done ]; do sleep 0.1; done"));
  }

  void expect_start(const Process& process, const std::string& start) {
    EXPECT_TRUE(process.wait_for_output("up " + start)) << process.err();
  }

  void expect_good_end() {
    folder_.write("done", "");
    for (const ProcessResult& result : wait_for_all()) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
  }
};

TEST_F(ElasticNodes, StartWithFewerAfterTheLastCall) {
  const Words command = elastic(kPatientConf + kLastCall);
  const Process& first = start(0, command);
  const Process& second = start(1, command);
  expect_start(first, "0 0 of 4");
  expect_start(second, "0 3 of 4");
  expect_in(first.err(), "waiting for 2 to 3 nodes");
  expect_in(second.err(), "start 1: node 1 of 2, 4 processes in all");
  expect_good_end();
}

TEST_F(ElasticNodes, GrowWhenOneComes) {
  const Words command = elastic(kPatientConf + kLastCall);
  const Process& first = start(0, command);
  const Process& second = start(1, command);
  expect_start(first, "0 1 of 4");
  expect_start(second, "0 2 of 4");
  const Process& third = start(2, command);
  expect_start(third, "1 5 of 6");
  expect_start(first, "1 0 of 6");
  expect_in(third.err(), "the job runs on 2 nodes");
  expect_in(second.err(),
            "host2 joins; the job goes on with 3 nodes and 6 processes");
  expect_good_end();
}

TEST_F(ElasticNodes, GoOnWithoutOneThatIsKilledAndLetItComeBack) {
  const Words command = elastic(kPatientConf);
  start_all(command);
  expect_up();
  processes_[1]->send(SIGKILL);
  processes_[1]->wait();
  expect_start(*processes_[0], "1 0 of 4");
  expect_start(*processes_[2], "1 2 of 4");
  expect_in(processes_[2]->err(), "host1 (node 1) is lost: its connection");
  expect_in(processes_[2]->err(),
            "; the job goes on with 2 nodes and 4 processes");
  EXPECT_TRUE(testing::wait_until_gone(processes_[1]->marker(), 60).empty());
  processes_.erase(processes_.begin() + 1);
  expect_start(start(1, command), "2 4 of 6");
  expect_good_end();
}

TEST_F(ElasticNodes, LetOneLeaveAndStopWhenTooFewWouldStay) {
  start_all(elastic(kPatientConf));
  expect_up();
  processes_[2]->send(SIGTERM);
  const ProcessResult left = processes_[2]->wait();
  EXPECT_EQ(left.exit_code, 128 + SIGTERM);
  expect_in(left.err, "SIGTERM received, this node leaves the job");
  expect_in(left.err,
            "host2 (node 2) leaves; the job goes on with 2 nodes and 4 "
            "processes");
  processes_.pop_back();
  expect_start(*processes_[0], "1 0 of 4");
  expect_start(*processes_[1], "1 2 of 4");
  processes_[1]->send(SIGTERM);
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  }
  expect_in(ended_[0]->err(), "another node received SIGTERM");
}

TEST_F(ElasticNodes, LetTheirHostLeave) {
  start_all(elastic(kPatientConf));
  expect_up();
  processes_[0]->send(SIGTERM);
  const ProcessResult left = processes_[0]->wait();
  EXPECT_EQ(left.exit_code, 128 + SIGTERM);
  expect_in(left.err,
            "host0 (node 0) leaves; the job goes on with 2 nodes and 4 "
            "processes");
  processes_.erase(processes_.begin());
  expect_start(*processes_[0], "1 0 of 4");
  expect_start(*processes_[1], "1 2 of 4");
  expect_good_end();
}

// The next host listens where the one that leaves has listened.
TEST_F(ElasticNodes, LetTheirHostLeaveTheMachineOfAll) {
  const Words command = elastic(kPatientConf);
  Process& host = start(0, command);
  ASSERT_TRUE(says(host, "waiting for 2 to 3 nodes")) << host.err();
  start(0, command);
  start(0, command);
  expect_up();
  host.send(SIGTERM);
  EXPECT_EQ(host.wait().exit_code, 128 + SIGTERM) << host.err();
  processes_.erase(processes_.begin());
  for (const auto& process : processes_) expect_start(*process, "1 ");
  expect_good_end();
}

TEST_F(ElasticNodes, StopTogetherAtCtrlC) {
  start_all(elastic(kPatientConf));
  expect_up();
  processes_[2]->send(SIGINT);
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
  }
}

TEST_F(ElasticNodes, EndWhenTooFewAreLeft) {
  // The other looks for the host while that one's time begins.
  const Process& other = start(1, elastic(kPatientConf));
  ASSERT_TRUE(says(other, "joining 2 to 3 nodes")) << other.err();
  Process& host =
      start(0, elastic(kPatientConf + kLastCall + ",join_timeout=30"));
  expect_start(host, "0 1 of 4");
  other.send(SIGKILL);
  const ProcessResult result = host.wait();
  EXPECT_EQ(result.exit_code, 6);
  expect_in(result.err,
            "1 node of at least 2 left, waiting up to 30.0 s for others");
  expect_in(result.err, "waited 30.0 s for at least 2 nodes, 1 came (host0)");
}

TEST_F(ElasticNodes, FailuresOfRanksCount) {
  const Words command =
      join({"--nnodes=2:3", kPatientConf + kLastCall, "--max-restarts=1"}) +
      shell(
          "echo up $TORCHELASTIC_RESTART_COUNT $RANK of $WORLD_SIZE; if [ "
          "$RANK = 3 ]; then exit 3; fi; exec sleep 1000");
  start(0, command);
  start(1, command);
  for (const ProcessResult& result : wait_for_all()) {
    EXPECT_EQ(result.exit_code, 3) << result.err;
    expect_in(result.err, "start again (restart 1 of 1)");
    expect_in(result.out, "up 1 ");
  }
}

// One node would be enough, but those that it does not hear are more.
TEST_F(ElasticNodes, GoOnWithoutOneThatIsCutOff) {
  start_all(elastic(kQuickConf, {"--nnodes=1:3"}));
  expect_up();
  hosts_.cut(2);
  const ProcessResult cut = processes_[2]->wait();
  EXPECT_EQ(cut.exit_code, 5);
  expect_in(cut.err, "broke: no sign of life for 12.0 s");
  expect_in(cut.err,
            "1 of the 3 nodes of the last start found each other; the others "
            "may go on without them, so the job ends here");
  processes_.pop_back();
  expect_start(*processes_[0], "1 1 of 4");
  expect_start(*processes_[1], "1 2 of 4");
  expect_in(processes_[0]->err(), "host2 (node 2) is lost: no sign of life");
  expect_good_end();
}

TEST_F(ElasticNodes, GoOnUnderANewHostWhenTheirsIsKilled) {
  start_all(elastic(kPatientConf));
  expect_up();
  processes_[0]->send(SIGKILL);
  processes_[0]->wait();
  processes_.erase(processes_.begin());
  expect_start(*processes_[0], "1 0 of 4");
  expect_start(*processes_[1], "1 2 of 4");
  expect_in(processes_[0]->err(), "waiting for the others as their host");
  expect_in(processes_[1]->err(), "joining the others at 10.77.0.2");
  // Others join there, and that host may be lost as well.
  Words command = elastic(kPatientConf);
  std::replace(command.begin(), command.end(), endpoint(),
               hosts_.address(1) + ":29400");
  expect_start(start(0, command), "2 4 of 6");
  processes_[0]->send(SIGKILL);
  processes_[0]->wait();
  processes_.erase(processes_.begin());
  expect_start(*processes_[0], "3 1 of 4");
  expect_start(*processes_[1], "3 3 of 4");
  expect_good_end();
}

TEST_F(ElasticNodes, GoOnAloneWhenTheHostOfTwoIsKilled) {
  const Words command =
      elastic(kPatientConf + kLastCall, {"--nnodes=1:3", "--max-restarts=0"});
  const Process& host = start(0, command);
  ASSERT_TRUE(says(host, "waiting for 1 to 3 nodes")) << host.err();
  const Process& other = start(1, command);
  ASSERT_TRUE(testing::wait_for(
      [&] { return other.out().find(" 3 of 4") != std::string::npos; }, 120))
      << other.err();
  host.send(SIGKILL);
  ASSERT_TRUE(testing::wait_for(
      [&] { return other.out().find(" 1 of 2") != std::string::npos; }, 120))
      << other.err();
  processes_[0]->wait();
  processes_.erase(processes_.begin());
  expect_good_end();
}

TEST_F(ElasticNodes, GoOnUnderANewHostWhenTheirsIsCutOff) {
  start_all(elastic(kQuickConf));
  expect_up();
  hosts_.cut(0);
  const ProcessResult host = processes_[0]->wait();
  EXPECT_EQ(host.exit_code, 5);
  expect_in(host.err, "they may go on without this side, so the job ends here");
  EXPECT_TRUE(testing::wait_until_gone(processes_[0]->marker(), 0).empty());
  processes_.erase(processes_.begin());
  expect_start(*processes_[0], "1 0 of 4");
  expect_start(*processes_[1], "1 3 of 4");
  expect_good_end();
}

TEST_F(ElasticNodes, TellTheirRanksWhichStartItIs) {
  const Words command =
      join({"--nnodes=1:3", kPatientConf + kLastCall}) +
      shell("echo $LOCKSTEP_ELASTIC $LOCKSTEP_GENERATION $RANK");
  const ProcessResult result = testing::run(hosts_.on(0, command), options());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "1:3 0 1");
}

}  // namespace
}  // namespace lockstep
