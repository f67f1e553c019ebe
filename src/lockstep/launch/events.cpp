#include "lockstep/launch/events.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"

namespace lockstep::launch {
namespace {

using nlohmann::ordered_json;

struct EventFacts {
  const char* state = "";
  std::optional<int> local_rank = {};  // no value: the launcher itself
  pid_t pid = 0;                       // of the worker
  const Failure* failure = nullptr;    // of the worker
};

ordered_json raw_error(const Failure* failure) {
  if (failure == nullptr) return nullptr;
  const auto file = failure->error ? base::try_read_file(failure->error_file)
                                   : std::optional<std::string>();
  return file.value_or(ordered_json{{"message", "<NONE>"}}.dump());
}

// The details are a JSON text of their own, with numbers as lists: so torchrun
// writes them.
std::string details(const Plan& plan, const JobWorld& world,
                    const EventFacts& facts) {
  ordered_json result = {{"group_world_size", world.num_nodes},
                         {"entry_point", plan.command.title}};
  if (facts.local_rank) {
    const ordered_json none = {nullptr};
    result["local_rank"] = {*facts.local_rank};
    result["role_rank"] = {world.first_role_rank + *facts.local_rank};
    result["role_world_size"] = {world.role_size};
    result["exit_code"] = none;
    result["worker_pid"] = none;
    if (facts.failure != nullptr) {
      result["exit_code"] = {facts.failure->exit_code};
      result["worker_pid"] = {facts.pid};
    }
  }
  return result.dump();
}

std::string event_line(const Plan& plan, const JobWorld& world,
                       const EventFacts& facts) {
  const ordered_json nothing = nullptr;
  const ordered_json metadata = {
      {"run_id", plan.run_id},
      {"global_rank", facts.local_rank
                          ? ordered_json(world.first_rank + *facts.local_rank)
                          : nothing},
      {"group_rank", world.node},
      {"worker_id",
       facts.local_rank ? ordered_json(std::to_string(facts.pid)) : nothing},
      {"role", plan.options.role},
      {"hostname", base::host_name()},
      {"state", facts.state},
      {"total_run_time", 0},
      {"rdzv_backend", "static"},
      {"raw_error", raw_error(facts.failure)},
      {"metadata", details(plan, world, facts)},
      {"agent_restarts", world.attempt},
      {"duration_ms", nullptr}};
  const ordered_json event = {
      {"name", std::string("torchelastic.worker.status.") + facts.state},
      {"source", facts.local_rank ? "WORKER" : "AGENT"},
      {"timestamp", 0},
      {"metadata", metadata}};
  return event.dump(-1, ' ', true, ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace

std::string start_events(const Plan& plan, const JobWorld& world,
                         std::span<const pid_t> workers) {
  std::string text;
  for (size_t rank = 0; rank < workers.size(); ++rank) {
    text += event_line(plan, world,
                       {.state = "START",
                        .local_rank = static_cast<int>(rank),
                        .pid = workers[rank]});
  }
  return text;
}

std::string end_events(const Plan& plan, const JobWorld& world,
                       std::span<const pid_t> workers,
                       const AttemptResult& result) {
  using Kind = AttemptResult::Kind;
  if (result.kind != Kind::kSuccess && result.kind != Kind::kFailure) {
    return event_line(plan, world, {.state = "FAILED"});
  }
  std::string text;
  for (size_t i = 0; i < workers.size(); ++i) {
    const int rank = world.first_rank + static_cast<int>(i);
    const auto failure =
        std::find_if(result.failures.begin(), result.failures.end(),
                     [rank](const Failure& f) { return f.rank == rank; });
    const bool failed = failure != result.failures.end();
    const bool succeeded = result.kind == Kind::kSuccess;
    text += event_line(plan, world,
                       {.state = failed      ? "FAILED"
                                 : succeeded ? "SUCCEEDED"
                                             : "TERMINATED",
                        .local_rank = static_cast<int>(i),
                        .pid = workers[i],
                        .failure = failed ? &*failure : nullptr});
  }
  return text + event_line(plan, world, {.state = "SUCCEEDED"});
}

}  // namespace lockstep::launch
