// Nodes whose ranks keep their state in memory, and what the host makes of it.
#include <gtest/gtest.h>

#include <csignal>

#include "lockstep/error.h"
#include "lockstep/launch/job_verdict.h"
#include "lockstep/launch/node_results.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using launch::AttemptResult;
using launch::JobVerdict;
using launch::merge_results;
using testing::expect_in;
using Kind = AttemptResult::Kind;

constexpr const char* kRanksKept = "the ranks that live keep their state";
constexpr const char* kBox1Lost =
    "box1 (node 1) is lost: its connection closed; ";

// Nodes of two ranks.
nodes::NodeResult box_with(int node, const AttemptResult& result) {
  return {
      .node = node,
      .entry = {.host_name = "box" + std::to_string(node), .num_processes = 2},
      .text = launch::encode_result(result, 1 << 20)};
}

AttemptResult suspension() {
  return {.kind = Kind::kSuspended, .held = {.is_held = true, .num_steps = 41}};
}

nodes::NodeResult suspended_box(int node) {
  return box_with(node, suspension());
}

// Its second rank has died.
nodes::NodeResult box_with_death(int node) {
  AttemptResult result = suspension();
  result.failures.push_back({.rank = 2 * node + 1,
                             .pid = 17,
                             .exit_code = -SIGKILL,
                             .unix_time = 50,
                             .error_file = "<N/A>",
                             .error = {},
                             .last_lines = {},
                             .position = "step 41, backward"});
  return box_with(node, result);
}

nodes::NodeResult without_state(nodes::NodeResult node) {
  AttemptResult result = launch::decode_result(node.text);
  result.held.is_held = false;
  node.text = launch::encode_result(result, 1 << 20);
  return node;
}

nodes::NodeResult lost_box(int node) {
  nodes::NodeResult result = box_with(node, {});
  result.text.clear();
  result.loss = "its connection closed";
  result.lost_at = 100;
  return result;
}

nodes::NodeResult silent_box(int node) {
  nodes::NodeResult result = lost_box(node);
  result.may_live = true;
  return result;
}

// As Attempt gives it where the others have the state.
nodes::NodeResult leaving_box(int node) {
  nodes::NodeResult result =
      box_with(node, {.kind = Kind::kRegrouped, .is_leaving = true});
  result.is_leaving = true;
  return result;
}

nodes::NodeResult failed_box(int node) {
  AttemptResult result{.kind = Kind::kFailure};
  result.failures.push_back({.rank = 2 * node,
                             .exit_code = 1,
                             .unix_time = 50,
                             .error_file = "<N/A>",
                             .error = {},
                             .last_lines = {}});
  return box_with(node, result);
}

Kind merged_kind(const std::vector<nodes::NodeResult>& nodes) {
  return merge_results({.nodes = nodes}).kind;
}

TEST(SuspendedNodes, HoldTheStateTogether) {
  AttemptResult further = suspension();
  further.held = {.is_held = false, .num_steps = 42};
  const AttemptResult merged =
      merge_results({.nodes = {suspended_box(0), box_with(1, further)}});
  EXPECT_EQ(merged.kind, Kind::kSuspended);
  EXPECT_TRUE(merged.held.is_held);
  EXPECT_EQ(merged.held.num_steps, 42);
  EXPECT_TRUE(merged.failures.empty());
}

TEST(SuspendedNodes, GoOnWithoutOneThatIsLost) {
  const AttemptResult merged = merge_results(
      {.nodes = {suspended_box(0), lost_box(1), box_with_death(2)}});
  EXPECT_EQ(merged.kind, Kind::kSuspended);
  ASSERT_EQ(merged.failures.size(), 2u);
  EXPECT_EQ(merged.failures[0].num_lost_ranks, 2);
  EXPECT_EQ(merged.failures[1].place, "box2 (node 2)");
}

TEST(SuspendedNodes, GoOnWithoutOneThatLeaves) {
  EXPECT_EQ(merged_kind({suspended_box(0), leaving_box(1)}), Kind::kSuspended);
  EXPECT_EQ(merged_kind({leaving_box(0), suspended_box(1)}), Kind::kSuspended);
}

TEST(SuspendedNodes, DoNotGoOnAfterAnErrorThatWouldComeAgain) {
  EXPECT_EQ(merged_kind({suspended_box(0), failed_box(1)}), Kind::kFailure);
  EXPECT_EQ(merged_kind({failed_box(0), suspended_box(1), lost_box(2)}),
            Kind::kFailure);
}

TEST(SuspendedNodes, DoNotGoOnWhenAnotherCouldNot) {
  EXPECT_EQ(
      merged_kind({box_with_death(0), box_with(1, {.kind = Kind::kEnded})}),
      Kind::kFailure);
  EXPECT_EQ(merged_kind({box_with_death(0), box_with(1, {})}), Kind::kFailure);
}

TEST(SuspendedNodes, DoNotGoOnWithoutTheState) {
  EXPECT_EQ(merged_kind({without_state(box_with_death(0)),
                         without_state(suspended_box(1))}),
            Kind::kFailure);
  EXPECT_EQ(merged_kind({without_state(suspended_box(0)), lost_box(1)}),
            Kind::kFailure);
  // What a node that leaves had is gone with it.
  EXPECT_NE(merged_kind({without_state(suspended_box(0)), leaving_box(1)}),
            Kind::kSuspended);
}

TEST(SuspendedNodes, DoNotGoOnAfterAStop) {
  EXPECT_EQ(merged_kind(
                {suspended_box(0),
                 box_with(1, {.kind = Kind::kStopped, .stop_signal = SIGINT})}),
            Kind::kStopped);
}

class SuspendedJob : public ::testing::Test {
 protected:
  SuspendedJob() {
    plan_.command.title = "p";
    plan_.timeout_seconds = 60;
  }

  JobVerdict judge(const nodes::Results& results) {
    const auto changes = plan_.nodes.is_elastic()
                             ? std::optional(launch::changes_in(results))
                             : std::nullopt;
    return judge_.judge(merge_results(results), 0, 100, 6, changes);
  }

  void expect_going_on(const JobVerdict& verdict, const std::string& text) {
    EXPECT_TRUE(verdict.is_restart);
    EXPECT_FALSE(verdict.is_counted);
    EXPECT_TRUE(verdict.keeps_state);
    EXPECT_EQ(verdict.text, "lockstep: " + text + kRanksKept + "\n");
  }

  launch::Plan plan_;
  launch::JobJudge judge_{plan_};
};

TEST_F(SuspendedJob, SaysWhichRankDied) {
  const JobVerdict verdict =
      judge({.nodes = {suspended_box(0), box_with_death(1)}});
  expect_going_on(verdict,
                  "rank 3 (pid 17) on box1 (node 1) died by SIGKILL (step 41, "
                  "backward) and is started again; ");
  EXPECT_EQ(verdict.delay_seconds, 0);
}

TEST_F(SuspendedJob, SaysWhichNodeIsLost) {
  expect_going_on(judge({.nodes = {suspended_box(0), lost_box(1)}}), kBox1Lost);
}

TEST_F(SuspendedJob, EndsAfterDeathsWithoutAStep) {
  const nodes::Results results{.nodes = {suspended_box(0), box_with_death(1)}};
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_TRUE(judge(results).keeps_state) << turn;
  }
  const JobVerdict verdict = judge(results);
  EXPECT_FALSE(verdict.is_restart);
  EXPECT_FALSE(verdict.keeps_state);
  EXPECT_EQ(verdict.exit_code, 128 + SIGKILL);
  ASSERT_TRUE(verdict.cause);
  EXPECT_EQ(verdict.cause->rank, 3);
  expect_in(verdict.text, "box1 (node 1)");
}

TEST_F(SuspendedJob, DeathsWithoutAStepMayStillRestartIt) {
  plan_.options.max_restarts = 1;
  const nodes::Results results{.nodes = {suspended_box(0), box_with_death(1)}};
  for (int turn = 0; turn < 10; ++turn) judge(results);
  const JobVerdict verdict = judge(results);
  EXPECT_TRUE(verdict.is_restart);
  EXPECT_TRUE(verdict.is_counted);
  EXPECT_FALSE(verdict.keeps_state);
}

// A job with --nnodes 2:4.
class ElasticSuspendedJob : public SuspendedJob {
 protected:
  ElasticSuspendedJob() {
    plan_.nodes.mode = launch::NodesPlan::Mode::kJoin;
    plan_.nodes.num_nodes = 4;
    plan_.nodes.min_nodes = 2;
  }
};

TEST_F(ElasticSuspendedJob, SaysWithWhomItGoesOn) {
  expect_going_on(
      judge({.nodes = {suspended_box(0), lost_box(1), suspended_box(2)}}),
      kBox1Lost +
          std::string("the job goes on with 2 nodes and 4 processes; "));
  expect_going_on(
      judge({.nodes = {suspended_box(0), leaving_box(1), suspended_box(2)}}),
      "box1 (node 1) leaves; the job goes on with 2 nodes and 4 "
      "processes; ");
  expect_going_on(judge({.nodes = {suspended_box(0), suspended_box(1)},
                         .newcomers = {{"x", 3}}}),
                  "x joins; the job goes on with 3 nodes and 7 processes; ");
}

TEST_F(ElasticSuspendedJob, DoesNotTalkOfNodesWhenOnlyARankDied) {
  expect_going_on(judge({.nodes = {suspended_box(0), box_with_death(1)}}),
                  "rank 3 (pid 17) on box1 (node 1) died by SIGKILL (step 41, "
                  "backward) and is started again; ");
}

TEST_F(ElasticSuspendedJob, NodesMayComeAndLeaveAsOftenAsTheyLike) {
  for (int turn = 0; turn < 30; ++turn) {
    EXPECT_TRUE(
        judge({.nodes = {suspended_box(0), leaving_box(1), suspended_box(2)},
               .newcomers = {{"x", 2}}})
            .keeps_state)
        << turn;
  }
}

TEST_F(ElasticSuspendedJob, WaitsUntilSilentNodesHaveEnded) {
  const JobVerdict verdict =
      judge({.nodes = {suspended_box(0), silent_box(1), suspended_box(2)}});
  EXPECT_TRUE(verdict.keeps_state);
  EXPECT_GT(verdict.delay_seconds, plan_.nodes.settings.keep_alive_interval);
  expect_in(verdict.text, "the job goes on in ");
}

TEST_F(ElasticSuspendedJob, EndsWhenSilentNodesMayGoOnElsewhere) {
  const JobVerdict verdict =
      judge({.nodes = {suspended_box(0), silent_box(1), silent_box(2)}});
  EXPECT_FALSE(verdict.is_restart);
  EXPECT_FALSE(verdict.keeps_state);
  EXPECT_EQ(verdict.exit_code, kPeerExitCode);
  expect_in(verdict.text, "they may go on without this side");
}

TEST_F(ElasticSuspendedJob, GoesOnWithoutAHostThatLeaves) {
  const JobVerdict verdict = judge({.nodes = {leaving_box(0), suspended_box(1),
                                              lost_box(2), suspended_box(3)}});
  EXPECT_TRUE(verdict.keeps_state);
  EXPECT_EQ(verdict.departed, (std::vector<int>{0, 2}));
}

TEST_F(ElasticSuspendedJob, StartsAnewWhenTheStateIsLost) {
  const JobVerdict verdict =
      judge({.nodes = {without_state(suspended_box(0)), lost_box(1),
                       without_state(suspended_box(2))}});
  EXPECT_TRUE(verdict.is_restart);
  EXPECT_FALSE(verdict.keeps_state);
}

}  // namespace
}  // namespace lockstep
