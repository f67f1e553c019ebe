#include "lockstep/launch/events.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using nlohmann::json;

std::vector<json> events_of(const std::string& text) {
  std::vector<json> events;
  for (const std::string& line : base::split(text, '\n')) {
    if (!line.empty()) events.push_back(json::parse(line));
  }
  return events;
}

launch::Plan two_processes() {
  launch::Plan plan;
  plan.num_processes = 2;
  plan.run_id = "job";
  plan.command.title = "train.py";
  return plan;
}

launch::JobWorld world_of(const launch::Plan& plan, int attempt) {
  return launch::world_of_one_node(plan, attempt, 4567);
}

std::vector<std::string> states_of(const std::vector<json>& events) {
  std::vector<std::string> states;
  for (const json& event : events) {
    states.push_back(event["source"].get<std::string>() + " " +
                     event["metadata"]["state"].get<std::string>());
  }
  return states;
}

TEST(Events, EveryWorkerStarts) {
  const auto events = events_of(
      launch::start_events(two_processes(), world_of(two_processes(), 1),
                           std::vector<pid_t>{11, 12}));
  ASSERT_EQ(events.size(), 2u);
  const json& event = events[1];
  EXPECT_EQ(event["name"], "torchelastic.worker.status.START");
  EXPECT_EQ(event["source"], "WORKER");
  const json& metadata = event["metadata"];
  EXPECT_EQ(metadata["run_id"], "job");
  EXPECT_EQ(metadata["global_rank"], 1);
  EXPECT_EQ(metadata["worker_id"], "12");
  EXPECT_EQ(metadata["agent_restarts"], 1);
  EXPECT_EQ(json::parse(metadata["metadata"].get<std::string>()),
            json::parse(R"({"group_world_size": 1, "entry_point": "train.py",
                            "local_rank": [1], "role_rank": [1],
                            "role_world_size": [2], "exit_code": [null],
                            "worker_pid": [null]})"));
}

TEST(Events, TheEndTellsWhoFailed) {
  const std::vector<pid_t> pids = {11, 12};
  using States = std::vector<std::string>;
  const launch::Plan plan = two_processes();
  EXPECT_EQ(
      states_of(
          events_of(launch::end_events(plan, world_of(plan, 0), pids, {}))),
      (States{"WORKER SUCCEEDED", "WORKER SUCCEEDED", "AGENT SUCCEEDED"}));
  launch::AttemptResult failure;
  failure.kind = launch::AttemptResult::Kind::kFailure;
  launch::Failure killed;
  killed.rank = 1;
  killed.exit_code = -9;
  failure.failures.push_back(killed);
  const auto events =
      events_of(launch::end_events(plan, world_of(plan, 0), pids, failure));
  EXPECT_EQ(states_of(events),
            (States{"WORKER TERMINATED", "WORKER FAILED", "AGENT SUCCEEDED"}));
  const json details =
      json::parse(events[1]["metadata"]["metadata"].get<std::string>());
  EXPECT_EQ(details["exit_code"], json::parse("[-9]"));
  EXPECT_EQ(details["worker_pid"], json::parse("[12]"));
  launch::AttemptResult stopped;
  stopped.kind = launch::AttemptResult::Kind::kStopped;
  EXPECT_EQ(states_of(events_of(
                launch::end_events(plan, world_of(plan, 0), pids, stopped))),
            States{"AGENT FAILED"});
}

}  // namespace
}  // namespace lockstep
