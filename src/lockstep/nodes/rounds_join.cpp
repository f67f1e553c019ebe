// How nodes come into a job.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "lockstep/nodes/rounds.h"

namespace lockstep::nodes {
namespace {

std::string taken_text(const Join& join, const std::string& holder) {
  return fmt::format(
      "--node-rank {} is taken by {}; give every node its own number",
      join.node.value_or(0), holder);
}

// "3", "2:4"
std::string nnodes_text(int min_nodes, int num_nodes) {
  return min_nodes == 0 ? std::to_string(num_nodes)
                        : fmt::format("{}:{}", min_nodes, num_nodes);
}

}  // namespace

std::string Rounds::objection_to(const Join& join) const {
  if (join.num_nodes != config_.num_nodes ||
      join.min_nodes != config_.min_nodes) {
    return fmt::format(
        "its --nnodes is {}, that of the host {}; give every node the same",
        nnodes_text(join.min_nodes, join.num_nodes),
        nnodes_text(config_.min_nodes, config_.num_nodes));
  }
  if (join.keeps_state != config_.keeps_state) {
    const auto text = [](bool keeps) { return keeps ? "memory" : "restart"; };
    return fmt::format(
        "its --recover is {}, that of the host {}; give every node the same",
        text(join.keeps_state), text(config_.keeps_state));
  }
  if (join.node && *join.node >= config_.num_nodes) {
    return fmt::format("--node-rank {} is not below --nnodes {}", *join.node,
                       config_.num_nodes);
  }
  if (join.is_host && host_) return "the job has a host already";
  // Before the first start nobody on another machine can mean to replace it.
  const Member* holder = holder_of(join.node);
  if (holder != nullptr && phase_ == Phase::kJoining && attempt_ == 0 &&
      holder->join.host_name != join.host_name) {
    return taken_text(join, holder->join.host_name);
  }
  return "";
}

const Rounds::Member* Rounds::holder_of(std::optional<int> node) const {
  if (!node) return nullptr;
  for (const auto& [id, member] : members_) {
    if (member.join.node == node) return &member;
  }
  return nullptr;
}

void Rounds::refuse(MemberId member, const std::string& reason) {
  send(member, Refusal{.reason = reason});
  dismissed_.push_back(member);
}

void Rounds::join(MemberId from, const Join& join, Moment now) {
  if (phase_ == Phase::kOver) {
    refuse(from, "the job has ended");
    return;
  }
  const bool is_new = !members_.contains(from);
  if (is_new) {
    if (const std::string objection = objection_to(join); !objection.empty()) {
      refuse(from, objection);
      return;
    }
    if (holder_of(join.node) != nullptr) {
      queue(from, join, now);
      return;
    }
  }
  const bool is_late = is_new && phase_ != Phase::kJoining;
  admit(from, join, now);
  if (!is_late) return;
  if (is_elastic() && std::ssize(nodes_) < config_.num_nodes) {
    plan_growth(from, now);
  } else {
    tell_it_is_full(from);
  }
}

void Rounds::tell_it_is_full(MemberId member) {
  send(member,
       Queued{fmt::format("the job has its {} nodes; this one takes the place "
                          "of the next that is lost",
                          config_.num_nodes)});
}

// Who starts a killed launcher again may be faster than the end of the old one.
void Rounds::queue(MemberId from, const Join& join, Moment now) {
  const std::string holder = holder_of(join.node)->join.host_name;
  newcomers_[from] = {.join = join, .came = now, .holder = holder};
  send(from, Queued{fmt::format("--node-rank {} is taken by {}; waiting until "
                                "that one is gone",
                                *join.node, holder)});
}

void Rounds::admit_newcomers(Moment now) {
  for (auto it = newcomers_.begin(); it != newcomers_.end();) {
    const auto [id, newcomer] = *it;
    if (phase_ == Phase::kOver || holder_of(newcomer.join.node) != nullptr) {
      ++it;
      continue;
    }
    it = newcomers_.erase(it);
    admit(id, newcomer.join, now);
    members_.at(id).clock_offset = newcomer.came.unix - newcomer.join.unix_time;
  }
}

void Rounds::refuse_late_newcomers(Moment now) {
  std::erase_if(newcomers_, [&](const auto& entry) {
    const Newcomer& newcomer = entry.second;
    if (now.ns < newcomer.came.ns + join_ns()) return false;
    refuse(entry.first, taken_text(newcomer.join, newcomer.holder));
    return true;
  });
}

void Rounds::admit(MemberId from, const Join& join, Moment now) {
  Member& member = members_[from];
  member.join = join;
  member.heard_ns = now.ns;
  member.clock_offset = now.unix - join.unix_time;
  member.is_ready = true;
  member.is_leaving = false;
  if (join.is_host) host_ = from;
  if (phase_ == Phase::kJoining) form_world(now);
}

void Rounds::dismiss_newcomers() {
  for (const auto& [id, newcomer] : std::exchange(newcomers_, {})) {
    refuse(id, kEndedWithout);
  }
}

}  // namespace lockstep::nodes
