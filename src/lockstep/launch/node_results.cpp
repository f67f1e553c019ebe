#include "lockstep/launch/node_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/error.h"
#include "lockstep/launch/node_changes.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;
using Kind = AttemptResult::Kind;

json failure_to_json(const Failure& failure) {
  json result = {{"rank", failure.rank},
                 {"local_rank", failure.local_rank},
                 {"place", failure.place},
                 {"pid", failure.pid},
                 {"exit_code", failure.exit_code},
                 {"on_request", failure.on_request},
                 {"unix_time", failure.unix_time},
                 {"error_file", failure.error_file},
                 {"last_lines", failure.last_lines},
                 {"peak_bytes", failure.peak_bytes},
                 {"meaning", failure.meaning},
                 {"position", failure.position},
                 {"num_lost_ranks", failure.num_lost_ranks}};
  if (failure.error) {
    result["error"] = {{"message", failure.error->message},
                       {"callstack", failure.error->callstack},
                       {"unix_seconds", failure.error->unix_seconds}};
  }
  if (failure.crash) {
    result["crash"] = {{"cause", failure.crash->cause},
                       {"stack", failure.crash->stack}};
  }
  return result;
}

Failure failure_from_json(const json& value) {
  Failure failure;
  value.at("rank").get_to(failure.rank);
  value.at("local_rank").get_to(failure.local_rank);
  value.at("place").get_to(failure.place);
  value.at("pid").get_to(failure.pid);
  value.at("exit_code").get_to(failure.exit_code);
  value.at("on_request").get_to(failure.on_request);
  value.at("unix_time").get_to(failure.unix_time);
  value.at("error_file").get_to(failure.error_file);
  value.at("last_lines").get_to(failure.last_lines);
  value.at("peak_bytes").get_to(failure.peak_bytes);
  value.at("meaning").get_to(failure.meaning);
  value.at("position").get_to(failure.position);
  value.at("num_lost_ranks").get_to(failure.num_lost_ranks);
  if (const auto error = value.find("error"); error != value.end()) {
    failure.error = base::ErrorReport{
        .message = error->at("message").get<std::string>(),
        .callstack = error->at("callstack").get<std::string>(),
        .unix_seconds = error->at("unix_seconds").get<int64_t>()};
  }
  if (const auto crash = value.find("crash"); crash != value.end()) {
    failure.crash = CrashReport{
        .cause = crash->at("cause").get<std::string>(),
        .stack = crash->at("stack").get<std::vector<std::string>>()};
  }
  return failure;
}

json status_to_json(const base::RankStatus& status) {
  return {{"phase", static_cast<int>(status.phase)},
          {"collective", static_cast<int>(status.collective)},
          {"silent_seconds", status.silent_seconds},
          {"step", status.step},
          {"started", status.collectives_started},
          {"finished", status.collectives_finished},
          {"collective_seconds", status.collective_seconds},
          {"collective_bytes", status.collective_bytes},
          {"timeout_seconds", status.timeout_seconds},
          {"last_failed", status.last_collective_failed}};
}

base::RankStatus status_from_json(const json& value) {
  base::RankStatus status;
  status.phase = static_cast<base::Phase>(value.at("phase").get<int>());
  status.collective =
      static_cast<base::Collective>(value.at("collective").get<int>());
  value.at("silent_seconds").get_to(status.silent_seconds);
  value.at("step").get_to(status.step);
  value.at("started").get_to(status.collectives_started);
  value.at("finished").get_to(status.collectives_finished);
  value.at("collective_seconds").get_to(status.collective_seconds);
  value.at("collective_bytes").get_to(status.collective_bytes);
  value.at("timeout_seconds").get_to(status.timeout_seconds);
  value.at("last_failed").get_to(status.last_collective_failed);
  return status;
}

json snapshot_to_json(const RankSnapshot& rank) {
  json result = {{"rank", rank.rank},
                 {"local_rank", rank.local_rank},
                 {"pid", rank.pid},
                 {"is_alive", rank.is_alive},
                 {"exit_code", rank.exit_code},
                 {"state", static_cast<int>(rank.state)},
                 {"waiting", rank.waiting},
                 {"is_paced", rank.is_paced},
                 {"ended_at", rank.ended_at}};
  if (rank.status) result["status"] = status_to_json(*rank.status);
  if (rank.quiet_seconds) result["quiet_seconds"] = *rank.quiet_seconds;
  return result;
}

RankSnapshot snapshot_from_json(const json& value) {
  RankSnapshot rank;
  value.at("rank").get_to(rank.rank);
  value.at("local_rank").get_to(rank.local_rank);
  value.at("pid").get_to(rank.pid);
  value.at("is_alive").get_to(rank.is_alive);
  value.at("exit_code").get_to(rank.exit_code);
  rank.state = static_cast<char>(value.at("state").get<int>());
  value.at("waiting").get_to(rank.waiting);
  value.at("is_paced").get_to(rank.is_paced);
  value.at("ended_at").get_to(rank.ended_at);
  if (const auto status = value.find("status"); status != value.end()) {
    rank.status = status_from_json(*status);
  }
  if (const auto quiet = value.find("quiet_seconds"); quiet != value.end()) {
    rank.quiet_seconds = quiet->get<double>();
  }
  return rank;
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <typename Read>
auto parse_as(const std::string& text, Read read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    throw FormatError(std::string("a node's result cannot be read: ") +
                      error.what());
  }
}

Failure lost_node_failure(const nodes::NodeResult& node, int first_rank,
                          const std::string& place) {
  return {.rank = first_rank,
          .place = place,
          .exit_code = kPeerExitCode,
          .unix_time = node.lost_at,
          .error_file = "<N/A>",
          .error = base::ErrorReport{.message = fmt::format("{} is lost: {}",
                                                            place, node.loss),
                                     .callstack = ""},
          .last_lines = {},
          .num_lost_ranks = node.entry.num_processes};
}

// Nodes were ended, and none says why.
Failure unknown_failure() {
  return {.exit_code = 1,
          .unix_time = 0,
          .error_file = "<N/A>",
          .error = base::ErrorReport{.message = "a node ended the attempt "
                                                "without a failure",
                                     .callstack = ""},
          .last_lines = {}};
}

Kind add_node(AttemptResult& merged, const nodes::NodeResult& node,
              const std::string& place) {
  AttemptResult own = decode_result(node.text);
  for (Failure& failure : own.failures) {
    failure.place = place;
    failure.unix_time += node.clock_offset;
    merged.failures.push_back(std::move(failure));
  }
  for (RankSnapshot& rank : own.snapshots) {
    rank.place = place;
    if (rank.ended_at > 0) rank.ended_at += node.clock_offset;
    merged.snapshots.push_back(std::move(rank));
  }
  merged.is_overdue = merged.is_overdue || own.is_overdue;
  merged.is_silent = merged.is_silent || own.is_silent;
  merged.stop_signal = std::max(merged.stop_signal, own.stop_signal);
  merged.memory_note += own.memory_note;
  merged.has_memory_kills = merged.has_memory_kills || own.has_memory_kills;
  if (merged.run_folder.empty()) merged.run_folder = own.run_folder;
  merged.held.is_held = merged.held.is_held || own.held.is_held;
  merged.held.num_steps = std::max(merged.held.num_steps, own.held.num_steps);
  // Only rank 0 knows what is saved.
  if (node.node == 0) merged.loss = own.loss;
  if (own.kind == Kind::kStopped) {
    merged.kind = Kind::kStopped;
  } else if ((own.kind == Kind::kRegrouped || own.kind == Kind::kSuspended) &&
             merged.kind == Kind::kSuccess) {
    merged.kind = Kind::kRegrouped;
  }
  return own.kind;
}

json result_to_json(const AttemptResult& result) {
  json value = {{"kind", static_cast<int>(result.kind)},
                {"stop_signal", result.stop_signal},
                {"failures", json::array()},
                {"ranks", json::array()},
                {"is_overdue", result.is_overdue},
                {"is_silent", result.is_silent},
                {"memory_note", result.memory_note},
                {"has_memory_kills", result.has_memory_kills},
                {"run_folder", result.run_folder}};
  if (result.loss) value["loss"] = *result.loss;
  if (result.kind == Kind::kSuspended) {
    value["held"] = {{"is_held", result.held.is_held},
                     {"num_steps", result.held.num_steps}};
  }
  for (const Failure& failure : result.failures) {
    value["failures"].push_back(failure_to_json(failure));
  }
  for (const RankSnapshot& rank : result.snapshots) {
    value["ranks"].push_back(snapshot_to_json(rank));
  }
  return value;
}

// The rest is in the files of its node.
void cut_short(Failure& failure) {
  constexpr size_t kFewBytes = 200;
  failure.last_lines.clear();
  failure.crash.reset();
  if (!failure.error) return;
  failure.error->message.resize(
      std::min(failure.error->message.size(), kFewBytes));
  failure.error->callstack.clear();
}

}  // namespace

std::string encode_failure(const Failure& failure) {
  return dump(failure_to_json(failure));
}

Failure decode_failure(const std::string& text) {
  return parse_as(text, failure_from_json);
}

size_t max_result_bytes(int num_nodes) {
  constexpr size_t kFewest = 1024;
  return std::max(kFewest,
                  nodes::kMaxBodyBytes / 2 / static_cast<size_t>(num_nodes));
}

std::string encode_result(const AttemptResult& result, size_t max_bytes) {
  std::string text = dump(result_to_json(result));
  if (text.size() <= max_bytes) return text;
  AttemptResult shorter = result;
  if (!result.failures.empty()) {
    shorter.failures = {result.failures[find_root_cause(result.failures)]};
  }
  text = dump(result_to_json(shorter));
  if (text.size() <= max_bytes) return text;
  shorter.snapshots.clear();
  shorter.memory_note.clear();
  for (Failure& failure : shorter.failures) cut_short(failure);
  return dump(result_to_json(shorter));
}

AttemptResult decode_result(const std::string& text) {
  return parse_as(text, [](const json& value) {
    AttemptResult result;
    result.kind = static_cast<Kind>(value.at("kind").get<int>());
    value.at("stop_signal").get_to(result.stop_signal);
    value.at("is_overdue").get_to(result.is_overdue);
    value.at("is_silent").get_to(result.is_silent);
    value.at("memory_note").get_to(result.memory_note);
    value.at("has_memory_kills").get_to(result.has_memory_kills);
    value.at("run_folder").get_to(result.run_folder);
    if (const auto loss = value.find("loss"); loss != value.end()) {
      result.loss = loss->get<std::string>();
    }
    if (const auto held = value.find("held"); held != value.end()) {
      held->at("is_held").get_to(result.held.is_held);
      held->at("num_steps").get_to(result.held.num_steps);
    }
    for (const json& failure : value.at("failures")) {
      result.failures.push_back(failure_from_json(failure));
    }
    for (const json& rank : value.at("ranks")) {
      result.snapshots.push_back(snapshot_from_json(rank));
    }
    return result;
  });
}

AttemptResult merge_results(const nodes::Results& results) {
  AttemptResult merged;
  int first_rank = 0;
  bool has_ended = false;
  bool is_suspended = true;  // all that stay
  for (const nodes::NodeResult& node : results.nodes) {
    const std::string place = place_text(node);
    if (node.loss.empty()) {
      const Kind kind = add_node(merged, node, place);
      has_ended = has_ended || kind == Kind::kEnded;
      is_suspended =
          is_suspended && (kind == Kind::kSuspended || node.is_leaving);
    } else {
      merged.failures.push_back(lost_node_failure(node, first_rank, place));
    }
    first_rank += node.entry.num_processes;
  }
  if (has_ended && merged.failures.empty() && merged.kind == Kind::kSuccess) {
    merged.failures.push_back(unknown_failure());
  }
  if (merged.kind == Kind::kStopped) return merged;
  if (is_suspended && merged.held.is_held) {
    merged.kind = Kind::kSuspended;
  } else if (!merged.failures.empty()) {
    merged.kind = Kind::kFailure;
  }
  return merged;
}

}  // namespace lockstep::launch
