#include "lockstep/launch/node_changes.h"

#include <gtest/gtest.h>

#include <csignal>

#include "lockstep/error.h"
#include "lockstep/launch/job_verdict.h"
#include "lockstep/launch/node_results.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using launch::AttemptResult;
using launch::Failure;
using launch::JobVerdict;
using testing::expect_in;
using Kind = AttemptResult::Kind;

nodes::NodeResult result_of_node(int node, const AttemptResult& result) {
  return {
      .node = node,
      .entry = {.host_name = "box" + std::to_string(node), .num_processes = 2},
      .text = launch::encode_result(result, 1 << 20)};
}

nodes::NodeResult lost_node(int node) {
  return {
      .node = node,
      .entry = {.host_name = "box" + std::to_string(node), .num_processes = 2},
      .loss = "its connection closed",
      .lost_at = 100};
}

nodes::NodeResult regrouped(int node) {
  return result_of_node(node, {.kind = Kind::kRegrouped});
}

nodes::NodeResult leaving(int node) {
  nodes::NodeResult result = regrouped(node);
  result.is_leaving = true;
  return result;
}

nodes::NodeResult failed(int node, int exit_code, double time) {
  Failure failure;
  failure.rank = 2 * node;
  failure.exit_code = exit_code;
  failure.unix_time = time;
  AttemptResult result{.kind = Kind::kFailure};
  result.failures.push_back(failure);
  return result_of_node(node, result);
}

// A job with --nnodes 2:4 and --max-restarts 1.
class NodeChangesTest : public ::testing::Test {
 protected:
  NodeChangesTest() {
    plan_.nodes.mode = launch::NodesPlan::Mode::kJoin;
    plan_.nodes.num_nodes = 4;
    plan_.nodes.min_nodes = 2;
    plan_.options.max_restarts = 1;
  }

  JobVerdict judge(const nodes::Results& results, int num_restarts = 1) {
    return judge_.judge(launch::merge_results(results), num_restarts, 100, 6,
                        launch::changes_in(results));
  }

  launch::Plan plan_;
  launch::JobJudge judge_{plan_};
};

void expect_free_restart(const JobVerdict& verdict, const std::string& text) {
  EXPECT_TRUE(verdict.is_restart);
  EXPECT_FALSE(verdict.is_counted);
  EXPECT_EQ(verdict.text, "lockstep: " + text + "\n");
}

TEST_F(NodeChangesTest, ALostNodeIsNoFailureOfTheJob) {
  expect_free_restart(
      judge({.nodes = {regrouped(0), lost_node(1), regrouped(2)}}),
      "box1 (node 1) is lost: its connection closed; the job goes on with 2 "
      "nodes and 4 processes");
}

TEST_F(NodeChangesTest, VictimsOfALostNodeAreNotCounted) {
  AttemptResult victim{.kind = Kind::kFailure};
  victim.failures.push_back(
      {.rank = 4,
       .exit_code = 5,
       .unix_time = 99,
       .error_file = "<N/A>",
       .error = base::ErrorReport{.message = "PeerError: rank 2 is gone",
                                  .callstack = ""},
       .last_lines = {}});
  EXPECT_FALSE(
      judge({.nodes = {regrouped(0), lost_node(1), result_of_node(2, victim)}})
          .is_counted);
}

TEST_F(NodeChangesTest, TooFewWaitForOthers) {
  expect_free_restart(
      judge({.nodes = {regrouped(0), lost_node(1), lost_node(2)}}),
      "box1 (node 1) is lost: its connection closed; box2 (node 2) is lost: "
      "its connection closed; 1 node of at least 2 left, waiting up to 10 min "
      "0 s for others");
}

TEST_F(NodeChangesTest, LossesInARowAreFollowedMoreSlowly) {
  const nodes::Results results{
      .nodes = {regrouped(0), lost_node(1), regrouped(2)}};
  const auto merged = launch::merge_results(results);
  const auto changes = launch::changes_in(results);
  EXPECT_EQ(judge_.judge(merged, 0, 1, 6, changes).delay_seconds, 0);
  const JobVerdict second = judge_.judge(merged, 0, 1, 6, changes);
  EXPECT_GT(second.delay_seconds, 0);
  expect_in(second.text, "the job goes on in 1.0 s with 2 nodes");
}

TEST_F(NodeChangesTest, NewNodesJoin) {
  expect_free_restart(judge({.nodes = {regrouped(0), regrouped(1)},
                             .newcomers = {{"x", 1}, {"y", 3}}}),
                      "x, y join; the job goes on with 4 nodes and 8 "
                      "processes");
}

TEST_F(NodeChangesTest, OneLeavesAndTheOthersGoOn) {
  expect_free_restart(
      judge({.nodes = {regrouped(0), leaving(1), regrouped(2)}}),
      "box1 (node 1) leaves; the job goes on with 2 nodes and 4 processes");
}

TEST_F(NodeChangesTest, TheHostLeavesWithAllThatHaveEnded) {
  const JobVerdict verdict =
      judge({.nodes = {leaving(0), regrouped(1), lost_node(2), regrouped(3)}});
  EXPECT_TRUE(verdict.is_restart);
  EXPECT_EQ(verdict.departed, (std::vector<int>{0, 2}));
  EXPECT_TRUE(judge({.nodes = {regrouped(0), leaving(1), regrouped(2)}})
                  .departed.empty());
}

TEST_F(NodeChangesTest, TheJobEndsWhenTooManyLeave) {
  const JobVerdict verdict =
      judge({.nodes = {regrouped(0), leaving(1), leaving(2)}});
  EXPECT_FALSE(verdict.is_restart);
  EXPECT_EQ(verdict.exit_code, 128 + SIGTERM);
}

TEST_F(NodeChangesTest, AStopEndsTheJobAlsoWhileNodesRegroup) {
  const JobVerdict verdict = judge(
      {.nodes = {regrouped(0), result_of_node(1, {.kind = Kind::kStopped,
                                                  .stop_signal = SIGINT})}});
  EXPECT_FALSE(verdict.is_restart);
  EXPECT_EQ(verdict.exit_code, 128 + SIGINT);
}

TEST_F(NodeChangesTest, FailuresOfRanksCount) {
  const nodes::Results results{.nodes = {failed(0, 3, 50), regrouped(1)},
                               .newcomers = {{"x", 1}}};
  const JobVerdict first = judge(results, 0);
  EXPECT_TRUE(first.is_restart);
  EXPECT_TRUE(first.is_counted);
  expect_in(first.text, "rank 0 on box0 (node 0) failed (exit code 3)");
  const JobVerdict second = judge(results, 1);
  EXPECT_FALSE(second.is_restart);
  EXPECT_EQ(second.exit_code, 3);
  // Also when a node was lost after it.
  EXPECT_TRUE(judge({.nodes = {failed(0, 3, 50), lost_node(1)}}, 0).is_counted);
}

TEST_F(NodeChangesTest, SilentNodesMayBeMoreAndGoOnElsewhere) {
  nodes::NodeResult silent = lost_node(1);
  silent.may_live = true;
  nodes::NodeResult other = lost_node(2);
  other.may_live = true;
  const JobVerdict minority =
      judge({.nodes = {regrouped(0), silent, other}}, 0);
  EXPECT_FALSE(minority.is_restart);
  EXPECT_EQ(minority.exit_code, kPeerExitCode);
  expect_in(minority.text, "they may go on without this side");
  // Also when a rank has failed before.
  EXPECT_EQ(judge({.nodes = {failed(0, 3, 50), silent, other}}, 0).exit_code,
            kPeerExitCode);
  // The host is the half with the lowest number, and gives the other time to
  // end its processes.
  const JobVerdict half =
      judge({.nodes = {regrouped(0), silent}, .newcomers = {{"x", 1}}});
  EXPECT_TRUE(half.is_restart);
  EXPECT_GT(half.delay_seconds, plan_.nodes.settings.keep_alive_interval);
  EXPECT_GT(judge({.nodes = {failed(0, 3, 50), regrouped(1), silent}}, 0)
                .delay_seconds,
            plan_.nodes.settings.keep_alive_interval);
  // Those that have ended for certain have no vote.
  EXPECT_TRUE(
      judge({.nodes = {regrouped(0), lost_node(1), lost_node(2)}}).is_restart);
}

TEST_F(NodeChangesTest, WhoIsDoneIsDone) {
  const JobVerdict verdict =
      judge({.nodes = {result_of_node(0, {}), result_of_node(1, {})}});
  EXPECT_FALSE(verdict.is_restart);
  EXPECT_EQ(verdict.exit_code, 0);
}

}  // namespace
}  // namespace lockstep
