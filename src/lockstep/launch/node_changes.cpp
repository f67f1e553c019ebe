#include "lockstep/launch/node_changes.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

std::string counted(int count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string nodes_counted(int count) { return counted(count, "node", "nodes"); }

}  // namespace

std::string place_text(const nodes::NodeResult& node) {
  return fmt::format("{} (node {})", node.entry.host_name, node.node);
}

// The host has the lowest number, which decides between halves.
bool has_quorum(const NodeChanges& changes) {
  return changes.num_present >= changes.num_silent;
}

NodeChanges changes_in(const nodes::Results& results) {
  NodeChanges changes;
  for (const nodes::NodeResult& node : results.nodes) {
    const std::string place = place_text(node);
    const bool is_lost = !node.loss.empty();
    if (!is_lost) {
      ++changes.num_present;
    } else if (node.may_live) {
      ++changes.num_silent;
    }
    if (is_lost ? !node.may_live : node.is_leaving) {
      changes.departed.push_back(node.node);
    }
    if (node.node == 0) changes.is_host_leaving = node.is_leaving;
    if (is_lost) {
      changes.losses.push_back(fmt::format("{} is lost: {}", place, node.loss));
    } else if (node.is_leaving) {
      changes.leavers.push_back(place);
    } else {
      ++changes.num_nodes;
      changes.num_ranks += node.entry.num_processes;
    }
  }
  for (const nodes::NodeEntry& entry : results.newcomers) {
    changes.newcomers.push_back(entry.host_name);
    ++changes.num_nodes;
    changes.num_ranks += entry.num_processes;
  }
  return changes;
}

std::string changes_text(const NodeChanges& changes, const NodesPlan& plan,
                         double delay_seconds) {
  std::vector<std::string> parts = changes.losses;
  const auto add = [&parts](const std::vector<std::string>& names,
                            const char* one, const char* many) {
    if (names.empty()) return;
    parts.push_back(fmt::format("{} {}", base::join(names, ", "),
                                names.size() == 1 ? one : many));
  };
  add(changes.leavers, "leaves", "leave");
  add(changes.newcomers, "joins", "join");
  const std::string when =
      delay_seconds > 0 ? " in " + base::duration_text(delay_seconds) : "";
  parts.push_back(
      changes.num_nodes < plan.min_nodes
          ? fmt::format("{} of at least {} left, waiting up to {} for others",
                        nodes_counted(changes.num_nodes), plan.min_nodes,
                        base::duration_text(plan.settings.join_timeout))
          : fmt::format("the job goes on{} with {} and {}", when,
                        nodes_counted(changes.num_nodes),
                        counted(changes.num_ranks, "process", "processes")));
  return base::join(parts, "; ");
}

}  // namespace lockstep::launch
