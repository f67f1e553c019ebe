// How the number of nodes of an elastic job changes.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <tuple>

#include "lockstep/base/clock.h"
#include "lockstep/error.h"
#include "lockstep/nodes/rounds.h"

namespace lockstep::nodes {
namespace {

// Nodes that are added together come one after the other.
constexpr int64_t kGrowthNs = 2 * base::kNsPerSecond;
// So do those that are asked to leave, of which each holds the state.
constexpr int64_t kLeaveNs = base::kNsPerSecond;

}  // namespace

int Rounds::fewest_nodes() const {
  return is_elastic() ? config_.min_nodes : config_.num_nodes;
}

// A fixed number of nodes waits for all. An elastic job waits at its first
// start for the last call; later only for those that were in it: who comes
// after them makes it grow.
bool Rounds::may_form(Moment now) {
  if (config_.lost_world && !may_succeed(now)) return false;
  if (is_elastic() && is_outvoted()) {
    end_all({.exit_code = kPeerExitCode,
             .text = "lockstep: most nodes of the last start have fallen "
                     "silent; they may go on without this side, so the job "
                     "ends here\n"});
    return false;
  }
  const auto num_ready = std::ranges::count_if(
      members_, [](const auto& entry) { return entry.second.is_ready; });
  if (num_ready >= config_.num_nodes) return true;
  if (num_ready < fewest_nodes()) {
    last_call_ns_.reset();
    return false;
  }
  if (now.ns >= join_deadline_ns_) return true;
  if (attempt_ > 0) {
    return std::ranges::all_of(members_, [](const auto& entry) {
      return entry.second.is_ready || entry.second.is_leaving;
    });
  }
  if (!last_call_ns_) {
    last_call_ns_ = now.ns + static_cast<int64_t>(config_.last_call_seconds *
                                                  double{base::kNsPerSecond});
  }
  return now.ns >= *last_call_ns_;
}

// Nodes that fell silent between two starts have no host, and go on when they
// are more than those that are left here.
bool Rounds::is_outvoted() const {
  const auto num_present = std::ranges::count_if(
      nodes_, [](const Node& node) { return node.member.has_value(); });
  return std::ssize(silent_) > num_present;
}

std::set<int> Rounds::former_nodes() const {
  std::set<int> nodes;
  for (const auto& [id, member] : members_) {
    const auto& former = member.join.former;
    if (member.is_ready && former &&
        former->attempt == config_.lost_world->attempt) {
      nodes.insert(former->node);
    }
  }
  return nodes;
}

bool Rounds::has_quorum(const std::set<int>& present) const {
  const LostWorld& world = *config_.lost_world;
  const size_t num_voters =
      static_cast<size_t>(world.num_nodes) - world.departed.size();
  int lowest = 0;
  while (world.departed.contains(lowest)) ++lowest;
  return 2 * present.size() > num_voters ||
         (2 * present.size() == num_voters && present.contains(lowest));
}

// After the loss of a host. From then on the job is as after any restart.
bool Rounds::may_succeed(Moment now) {
  const LostWorld& world = *config_.lost_world;
  const auto after = [this](double seconds) {
    return begin_ns_ +
           static_cast<int64_t>(seconds * double{base::kNsPerSecond});
  };
  const std::set<int> present = former_nodes();
  const size_t num_left = static_cast<size_t>(world.num_nodes) -
                          world.departed.size() - world.silent.size();
  const int64_t deadline =
      after(std::max(world.settle_seconds,
                     present.size() >= num_left ? 0.0 : world.wait_seconds));
  if (now.ns < deadline) {
    last_call_ns_ = deadline;
    return false;
  }
  last_call_ns_.reset();
  if (!has_quorum(present)) {
    give_up_succession(present.size());
    return false;
  }
  config_.lost_world.reset();
  return true;
}

void Rounds::give_up_succession(size_t num_present) {
  end_all({.exit_code = kPeerExitCode,
           .text = fmt::format(
               "lockstep: {} of the {} nodes of the last start found each "
               "other; the others may go on without them, so the job ends "
               "here\n",
               num_present, config_.lost_world->num_nodes)});
}

std::vector<std::string> Rounds::first_addresses() const {
  constexpr size_t kMost = 8;  // Not all of a large job, to all.
  std::vector<std::string> addresses;
  if (!is_elastic()) return addresses;
  for (const Node& node : nodes_) {
    if (addresses.size() == kMost) break;
    addresses.push_back(members_.at(*node.member).join.address);
  }
  return addresses;
}

// Without gaps: the host, those that had a number in their order, new ones by
// name.
void Rounds::renumber(std::vector<MemberId> chosen) {
  std::ranges::sort(chosen, {}, [this](MemberId id) {
    const Member& member = members_.at(id);
    const auto& former = member.join.former;
    return std::tuple(id == host_ ? 0 : 1,
                      member.node.value_or(former ? former->node : INT_MAX),
                      member.join.host_name, id);
  });
  for (auto& [id, member] : members_) member.node.reset();
  nodes_.assign(chosen.size(), {});
  for (size_t i = 0; i < chosen.size(); ++i) {
    nodes_[i].member = chosen[i];
    members_.at(chosen[i]).node = static_cast<int>(i);
  }
}

int Rounds::num_staying() const {
  return static_cast<int>(
      std::ranges::count_if(nodes_, [this](const Node& node) {
        return node.member && !members_.at(*node.member).is_leaving;
      }));
}

// In the order in which they came, as many as there are places.
std::vector<MemberId> Rounds::waiting_for_a_place() const {
  std::vector<MemberId> found;
  if (!is_elastic()) return found;
  const int num_places = config_.num_nodes - num_staying();
  for (const auto& [id, member] : members_) {
    if (member.is_ready && !member.node && std::ssize(found) < num_places) {
      found.push_back(id);
    }
  }
  return found;
}

void Rounds::plan_growth(MemberId newcomer, Moment now) {
  send(newcomer,
       Queued{fmt::format("the job runs on {} node{}; it stops them at their "
                          "next step and starts again with this one",
                          nodes_.size(), nodes_.size() == 1 ? "" : "s")});
  const bool is_complete =
      std::ssize(waiting_for_a_place()) + num_staying() == config_.num_nodes;
  if (is_complete) {
    growth_ns_ = now.ns;
  } else if (!growth_ns_) {
    growth_ns_ = now.ns + kGrowthNs;
  }
}

// Also the end of the last call.
void Rounds::grow(Moment now) {
  if (phase_ == Phase::kJoining && last_call_ns_ && now.ns >= *last_call_ns_) {
    form_world(now);
  }
  if (!growth_ns_ || now.ns < *growth_ns_) return;
  growth_ns_.reset();
  // A job whose first node is done is about to end.
  const bool is_ending = std::ranges::any_of(
      nodes_, [](const Node& node) { return node.result.has_value(); });
  if (phase_ == Phase::kRunning && !is_ending &&
      !waiting_for_a_place().empty()) {
    end_attempt({.kind = regroup_kind()}, std::nullopt);
  }
}

// True: the others go on without it.
bool Rounds::let_go(MemberId member, Moment now) {
  if (!is_elastic()) return false;
  if (phase_ == Phase::kJoining) {
    if (member == host_) return false;
    members_.at(member).is_ready = false;
    members_.at(member).is_leaving = true;
    form_world(now);
    return true;
  }
  if (node_of(member) == nullptr) return true;
  if (phase_ == Phase::kRunning && num_staying() <= config_.min_nodes) {
    return false;
  }
  members_.at(member).is_leaving = true;
  if (phase_ != Phase::kRunning) return true;
  if (!config_.keeps_state) {
    end_attempt({.kind = End::Kind::kRegroup}, member);
  } else if (!leave_ns_) {
    leave_ns_ = now.ns + kLeaveNs;
  }
  return true;
}

// Unless so many have asked meanwhile that the job has stopped.
void Rounds::let_leavers_go(Moment now) {
  if (!leave_ns_ || now.ns < *leave_ns_) return;
  leave_ns_.reset();
  if (phase_ == Phase::kRunning) {
    end_attempt({.kind = End::Kind::kSuspend}, std::nullopt);
  }
}

}  // namespace lockstep::nodes
