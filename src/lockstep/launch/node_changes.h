// How the nodes of an elastic job change after an attempt.
#pragma once

#include <string>
#include <vector>

#include "lockstep/launch/nodes_plan.h"
#include "lockstep/nodes/messages.h"

namespace lockstep::launch {

struct NodeChanges {
  std::vector<std::string> losses;     // "box (node 1) is lost: ..."
  std::vector<std::string> leavers;    // "box (node 1)"
  std::vector<std::string> newcomers;  // "box"
  int num_present = 0;  // of the last world, also those that leave
  int num_silent = 0;   // lost, but they may live
  // Numbers of those that leave or have ended.
  std::vector<int> departed = {};
  bool is_host_leaving = false;
  bool has_news() const {
    return !losses.empty() || !leavers.empty() || !newcomers.empty();
  }
  // With which the job goes on.
  int num_nodes = 0;
  int num_ranks = 0;
};

// False: those that are silent may be more, and go on without this host.
bool has_quorum(const NodeChanges& changes);

NodeChanges changes_in(const nodes::Results& results);

// "box (node 1)"
std::string place_text(const nodes::NodeResult& node);

// "box joins; the job goes on with 3 nodes and 6 processes", or for how long it
// waits for more.
std::string changes_text(const NodeChanges& changes, const NodesPlan& plan,
                         double delay_seconds);

}  // namespace lockstep::launch
