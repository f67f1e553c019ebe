#include "lockstep/launch/node_results.h"

#include <gtest/gtest.h>

#include <csignal>

#include "lockstep/error.h"
#include "lockstep/launch/job_verdict.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using launch::AttemptResult;
using launch::Failure;
using launch::RankSnapshot;
using testing::expect_in;
using Kind = AttemptResult::Kind;
using Words = std::vector<std::string>;

Failure failure_of(int rank, double time) {
  Failure failure;
  failure.rank = rank;
  failure.local_rank = rank % 2;
  failure.pid = 100 + rank;
  failure.exit_code = 3;
  failure.unix_time = time;
  return failure;
}

RankSnapshot rank_of(int rank, int64_t collectives) {
  RankSnapshot snapshot;
  snapshot.rank = rank;
  snapshot.local_rank = rank % 2;
  snapshot.pid = 100 + rank;
  snapshot.is_alive = true;
  snapshot.state = 'S';
  snapshot.status = base::RankStatus{.collective = base::Collective::kAllReduce,
                                     .step = 7,
                                     .collectives_started = collectives};
  return snapshot;
}

nodes::NodeResult node_of(int node, const AttemptResult& result) {
  return {
      .node = node,
      .entry = {.host_name = "box" + std::to_string(node), .num_processes = 2},
      .text = launch::encode_result(result, 1 << 20)};
}

launch::Plan plan() {
  launch::Plan result;
  result.command.title = "p";
  result.timeout_seconds = 60;
  return result;
}

TEST(NodeResults, SurviveTheWayToTheHost) {
  AttemptResult result;
  result.kind = Kind::kFailure;
  result.stop_signal = SIGTERM;
  result.is_silent = true;
  result.memory_note = "memory\n";
  result.loss = "steps are lost";
  Failure failure = failure_of(1, 12.25);
  failure.error = base::ErrorReport{.message = "IoError: \xff is not UTF-8",
                                    .callstack = "a",
                                    .unix_seconds = 4};
  failure.last_lines = {"one", "two"};
  failure.crash = launch::CrashReport{.cause = "bad address", .stack = {"f"}};
  failure.meaning = "killed";
  failure.position = "step 3, forward";
  result.failures = {failure};
  result.snapshots = {rank_of(0, 9)};
  result.snapshots[0].quiet_seconds = 1.5;
  result.snapshots[0].waiting = "sleeping";
  const AttemptResult back =
      launch::decode_result(launch::encode_result(result, 1 << 20));
  EXPECT_EQ(back.kind, Kind::kFailure);
  EXPECT_EQ(back.stop_signal, SIGTERM);
  EXPECT_TRUE(back.is_silent);
  EXPECT_EQ(back.memory_note, "memory\n");
  EXPECT_EQ(back.loss, "steps are lost");
  ASSERT_EQ(back.failures.size(), 1u);
  EXPECT_EQ(back.failures[0].unix_time, 12.25);
  EXPECT_EQ(back.failures[0].error->message,
            "IoError: \xef\xbf\xbd is not UTF-8");
  EXPECT_EQ(back.failures[0].last_lines, failure.last_lines);
  EXPECT_EQ(back.failures[0].crash->stack, failure.crash->stack);
  EXPECT_EQ(back.failures[0].position, failure.position);
  ASSERT_EQ(back.snapshots.size(), 1u);
  EXPECT_EQ(back.snapshots[0].status->collectives_started, 9);
  EXPECT_EQ(back.snapshots[0].quiet_seconds, 1.5);
  EXPECT_THROW(launch::decode_result("{}"), FormatError);
  EXPECT_THROW(launch::decode_result("nonsense"), FormatError);
}

TEST(NodeResults, ThatAreSuspendedSayWhatTheyHold) {
  AttemptResult result;
  result.kind = Kind::kSuspended;
  result.held = {.is_held = true, .num_steps = 41};
  result.failures = {failure_of(1, 12.25)};
  const AttemptResult back =
      launch::decode_result(launch::encode_result(result, 1 << 20));
  EXPECT_EQ(back.kind, Kind::kSuspended);
  EXPECT_TRUE(back.held.is_held);
  EXPECT_EQ(back.held.num_steps, 41);
  ASSERT_EQ(back.failures.size(), 1u);
  // Also where not all is told.
  result.failures = {100, failure_of(1, 12.25)};
  const AttemptResult cut =
      launch::decode_result(launch::encode_result(result, 1024));
  EXPECT_EQ(cut.kind, Kind::kSuspended);
  EXPECT_TRUE(cut.held.is_held);
  EXPECT_EQ(cut.held.num_steps, 41);
}

TEST(NodeResults, TheFirstFailureByTheHostsClockIsTheRootCause) {
  AttemptResult early;
  early.kind = Kind::kFailure;
  early.failures = {failure_of(1, 1000)};
  AttemptResult late = early;
  late.failures = {failure_of(2, 500)};
  // The clock of node 1 is 10 minutes behind.
  nodes::NodeResult second = node_of(1, late);
  second.clock_offset = 600;
  const AttemptResult merged =
      launch::merge_results({.nodes = {node_of(0, early), second}});
  EXPECT_EQ(merged.kind, Kind::kFailure);
  ASSERT_EQ(merged.failures.size(), 2u);
  const size_t root = launch::find_root_cause(merged.failures);
  EXPECT_EQ(merged.failures[root].rank, 1);
  EXPECT_EQ(merged.failures[root].place, "box0 (node 0)");
  EXPECT_EQ(merged.failures[1].unix_time, 1100);
}

TEST(NodeResults, ALostNodeIsTheCauseAndItsVictimsAreNot) {
  AttemptResult victim;
  victim.kind = Kind::kFailure;
  Failure peer = failure_of(0, 10);
  peer.exit_code = kPeerExitCode;
  peer.error = base::ErrorReport{.message = "PeerError: gone", .callstack = ""};
  victim.failures = {peer};
  nodes::NodeResult lost{.node = 1,
                         .entry = {.host_name = "box1", .num_processes = 2},
                         .loss = "its connection closed",
                         .lost_at = 12};
  const launch::Plan own = plan();
  launch::JobJudge judge(own);
  const auto verdict = judge.judge(
      launch::merge_results({.nodes = {node_of(0, victim), lost}}), 0, 1, 4);
  EXPECT_EQ(verdict.exit_code, kPeerExitCode);
  expect_in(verdict.text, "host      : box1 (node 1)");
  expect_in(verdict.text, "lost      : the whole node, ranks 2-3");
  expect_in(verdict.text, "box1 (node 1) is lost: its connection closed");
}

TEST(NodeResults, AStalledRankOfAnotherNodeIsNamed) {
  AttemptResult waiting;
  waiting.kind = Kind::kFailure;
  waiting.snapshots = {rank_of(0, 9), rank_of(1, 9)};
  Failure timeout = failure_of(0, 10);
  timeout.exit_code = kTimeoutExitCode;
  timeout.error =
      base::ErrorReport{.message = "TimeoutError: all_reduce", .callstack = ""};
  waiting.failures = {timeout};
  AttemptResult ended;
  ended.kind = Kind::kEnded;
  ended.snapshots = {rank_of(2, 9), rank_of(3, 8)};
  const launch::Plan own = plan();
  launch::JobJudge judge(own);
  const auto verdict =
      judge.judge(launch::merge_results(
                      {.nodes = {node_of(0, waiting), node_of(1, ended)}}),
                  0, 1, 4);
  expect_in(verdict.text, "stalled: rank 3 (pid 103) on box1 (node 1)");
  EXPECT_EQ(verdict.exit_code, kTimeoutExitCode);
}

TEST(NodeResults, AreCutToWhatTheHostTakes) {
  AttemptResult result;
  result.kind = Kind::kFailure;
  for (int rank = 0; rank < 64; ++rank) {
    Failure failure = failure_of(rank, 100 - rank);
    failure.last_lines = Words(20, std::string(400, 'x'));
    failure.error = base::ErrorReport{.message = std::string(3000, 'm'),
                                      .callstack = std::string(3000, 'c')};
    result.failures.push_back(failure);
    result.snapshots.push_back(rank_of(rank, 3));
  }
  for (const int num_nodes : {2, 64, 8192}) {
    const size_t most = launch::max_result_bytes(num_nodes);
    const std::string text = launch::encode_result(result, most);
    EXPECT_LE(text.size(), most) << num_nodes;
    const AttemptResult back = launch::decode_result(text);
    EXPECT_EQ(back.failures[launch::find_root_cause(back.failures)].rank, 63);
  }
}

TEST(NodeResults, AStopIsNoFailure) {
  AttemptResult stopped;
  stopped.kind = Kind::kStopped;
  stopped.stop_signal = SIGINT;
  stopped.loss = "of node 0";
  AttemptResult other = stopped;
  other.loss = "of node 1, which does not save";
  const AttemptResult merged = launch::merge_results(
      {.nodes = {node_of(0, stopped), node_of(1, other)}});
  EXPECT_EQ(merged.kind, Kind::kStopped);
  EXPECT_EQ(merged.loss, "of node 0");
}

TEST(NodeResults, AnEndWithoutAReasonIsAFailure) {
  AttemptResult ended;
  ended.kind = Kind::kEnded;
  const AttemptResult merged =
      launch::merge_results({.nodes = {node_of(0, {}), node_of(1, ended)}});
  EXPECT_EQ(merged.kind, Kind::kFailure);
  EXPECT_EQ(
      launch::merge_results({.nodes = {node_of(0, {}), node_of(1, {})}}).kind,
      Kind::kSuccess);
}

}  // namespace
}  // namespace lockstep
