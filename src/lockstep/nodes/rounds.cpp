#include "lockstep/nodes/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::nodes {
namespace {

int64_t in_ns(double seconds) {
  return static_cast<int64_t>(seconds * double{base::kNsPerSecond});
}

}  // namespace

Rounds::Rounds(RoundsConfig config, Moment now)
    : config_(std::move(config)),
      begin_ns_(now.ns),
      join_deadline_ns_(now.ns + join_ns()),
      next_alive_ns_(now.ns + in_ns(config_.alive_seconds)) {
  if (!config_.lost_world) return;
  attempt_ = config_.lost_world->attempt + 1;
  num_restarts_ = config_.lost_world->num_restarts;
  generation_ = config_.lost_world->generation + 1;
}

std::vector<Rounds::Outgoing> Rounds::take_outgoing() {
  return std::exchange(outgoing_, {});
}

std::vector<MemberId> Rounds::take_dismissed() {
  return std::exchange(dismissed_, {});
}

std::vector<MemberId> Rounds::take_lost() { return std::exchange(lost_, {}); }

void Rounds::send(MemberId to, Message message) {
  outgoing_.push_back({.to = to, .message = std::move(message)});
}

Rounds::Node* Rounds::node_of(MemberId member) {
  const auto found = members_.find(member);
  if (found == members_.end() || !found->second.node) return nullptr;
  Node& node = nodes_[static_cast<size_t>(*found->second.node)];
  return node.member == member ? &node : nullptr;
}

int64_t Rounds::join_ns() const { return in_ns(config_.join_seconds); }

int64_t Rounds::lost_after_ns() const {
  return in_ns(config_.alive_seconds * config_.max_missed);
}

void Rounds::receive(MemberId from, const Message& message, Moment now) {
  if (const auto found = members_.find(from); found != members_.end()) {
    found->second.heard_ns = now.ns;
  } else if (!std::holds_alternative<Join>(message)) {
    return;
  }
  if (const auto* join_message = std::get_if<Join>(&message)) {
    join(from, *join_message, now);
  } else if (const auto* alive = std::get_if<Alive>(&message)) {
    members_[from].is_stuck = alive->is_stuck;
    end_if_all_are_stuck();
  } else if (const auto* ending = std::get_if<Ending>(&message)) {
    hear_of_end(from, *ending, now);
  } else if (const auto* result = std::get_if<Result>(&message)) {
    take_result(from, result->text);
  } else if (const auto* verdict = std::get_if<Verdict>(&message)) {
    if (from == host_ && phase_ == Phase::kEnding) give_verdict(*verdict, now);
  } else if (const auto* note = std::get_if<Note>(&message)) {
    pass_on(from, *note);
  } else if (std::holds_alternative<Abandon>(message)) {
    leave(from, "it hears nothing from the host any more", now, Fate::kUnknown);
  }
}

// All nodes may have much to say at once: it is not what the job is for.
void Rounds::pass_on(MemberId from, const Note& note) {
  constexpr size_t kMostBytes = 2000;
  const Node* node = node_of(from);
  if (phase_ != Phase::kRunning || node == nullptr ||
      ++num_notes_ > config_.max_notes) {
    return;
  }
  const Note named{fmt::format("{} (node {}): {}", node->entry.host_name,
                               *members_.at(from).node,
                               note.text.substr(0, kMostBytes))};
  for (const Node& other : nodes_) {
    if (other.member && *other.member != from) send(*other.member, named);
  }
}

void Rounds::hear_of_end(MemberId from, const Ending& ending, Moment now) {
  if (ending.is_leaving && let_go(from, now)) return;
  if (phase_ == Phase::kJoining && ending.signal != 0) {
    end_all({.exit_code = 128 + ending.signal,
             .stop_signal = ending.signal,
             .text = fmt::format("lockstep: {} was asked to stop, the job does "
                                 "not start\n",
                                 members_.at(from).join.host_name)});
    return;
  }
  if (phase_ != Phase::kRunning || node_of(from) == nullptr) return;
  const End end{.kind = ending.suspends      ? End::Kind::kSuspend
                        : ending.signal == 0 ? End::Kind::kFailure
                                             : End::Kind::kStop,
                .signal = ending.signal};
  // One that may not leave with its state has not asked its ranks to end.
  if (ending.is_leaving && config_.keeps_state) {
    end_attempt(end, std::nullopt);
  } else {
    end_attempt(end, from);
  }
}

// Before any process runs.
void Rounds::end_all(const Verdict& verdict) {
  for (const auto& [id, member] : members_) {
    send(id, verdict);
    dismissed_.push_back(id);
  }
  phase_ = Phase::kOver;
  dismiss_newcomers();
}

// Those that have a number keep it; the host is number 0. Others wait for a
// place in the order in which they came.
std::vector<MemberId> Rounds::choose_members() const {
  std::vector<std::tuple<int, MemberId>> order;
  for (const auto& [id, member] : members_) {
    if (!member.is_ready) continue;
    const bool has_place =
        member.node || member.join.node || member.join.former;
    const int urgency = id == host_ ? 0 : has_place ? 1 : 2;
    order.emplace_back(urgency, id);
  }
  std::sort(order.begin(), order.end());
  std::vector<MemberId> chosen;
  for (const auto& [urgency, id] : order) {
    if (std::ssize(chosen) < config_.num_nodes) chosen.push_back(id);
  }
  return chosen;
}

// New ones get the free numbers in the order of their names, whichever came
// first.
void Rounds::number(const std::vector<MemberId>& chosen) {
  nodes_.assign(chosen.size(), {});
  std::vector<MemberId> unnumbered;
  for (const MemberId id : chosen) {
    Member& member = members_.at(id);
    if (id == host_) member.node = 0;
    if (!member.node && member.join.node) member.node = member.join.node;
    if (member.node) {
      nodes_[static_cast<size_t>(*member.node)].member = id;
    } else {
      unnumbered.push_back(id);
    }
  }
  std::sort(unnumbered.begin(), unnumbered.end(),
            [this](MemberId a, MemberId b) {
              return std::tie(members_.at(a).join.host_name, a) <
                     std::tie(members_.at(b).join.host_name, b);
            });
  size_t next = 0;
  for (const MemberId id : unnumbered) {
    while (nodes_[next].member) ++next;
    nodes_[next].member = id;
    members_.at(id).node = static_cast<int>(next);
  }
}

// Without a receiver.
World Rounds::describe_world() {
  const Join& host = members_.at(*host_).join;
  const bool is_held = std::ranges::any_of(nodes_, [this](const Node& node) {
    return members_.at(*node.member).join.holds_state;
  });
  if (!is_held) generation_ = 0;
  World world{.attempt = attempt_,
              .num_restarts = num_restarts_,
              .generation = generation_,
              .num_nodes = static_cast<int>(nodes_.size()),
              .num_ranks = 0,
              .master_addr = host.master_addr,
              .master_port = host.master_port,
              .store_secret = host.store_secret,
              .job = host.job,
              .addresses = first_addresses()};
  for (Node& node : nodes_) {
    const Join& join = members_.at(*node.member).join;
    node.entry = {.host_name = join.host_name,
                  .num_processes = join.num_processes};
    world.num_ranks += join.num_processes;
  }
  return world;
}

void Rounds::form_world(Moment now) {
  if (!host_ || !members_.at(*host_).is_ready || !may_form(now)) return;
  if (is_elastic()) {
    renumber(choose_members());
  } else {
    number(choose_members());
  }
  World world = describe_world();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Member& member = members_.at(*nodes_[i].member);
    member.is_ready = false;
    member.is_stuck = false;
    world.node = static_cast<int>(i);
    send(*nodes_[i].member, world);
    world.first_rank += member.join.num_processes;
  }
  for (const auto& [id, member] : members_) {
    if (member.is_ready) tell_it_is_full(id);
  }
  phase_ = Phase::kRunning;
  num_notes_ = 0;
  last_call_ns_.reset();
  growth_ns_.reset();
  leave_ns_.reset();
  silent_.clear();
  next_alive_ns_ = now.ns + in_ns(config_.alive_seconds);
}

void Rounds::end_attempt(const End& end, std::optional<MemberId> except) {
  phase_ = Phase::kEnding;
  for (const Node& node : nodes_) {
    if (node.member && *node.member != except) send(*node.member, end);
  }
}

void Rounds::end_if_all_are_stuck() {
  if (phase_ != Phase::kRunning) return;
  for (const Node& node : nodes_) {
    if (node.result) continue;  // Its ranks have ended well.
    if (!node.member || !members_.at(*node.member).is_stuck) return;
  }
  end_attempt({.kind = End::Kind::kStuck}, std::nullopt);
}

void Rounds::take_result(MemberId from, const std::string& text) {
  Node* node = node_of(from);
  if (node == nullptr || node->result ||
      (phase_ != Phase::kRunning && phase_ != Phase::kEnding)) {
    return;
  }
  const Member& member = members_.at(from);
  node->result = NodeResult{.node = *member.node,
                            .entry = node->entry,
                            .text = text,
                            .is_leaving = member.is_leaving,
                            .clock_offset = member.clock_offset};
  // Those that are left may all be stuck.
  end_if_all_are_stuck();
  collect();
}

void Rounds::collect() {
  const auto is_missing = [](const Node& node) { return !node.result; };
  if (std::any_of(nodes_.begin(), nodes_.end(), is_missing)) return;
  Results results;
  results.nodes.reserve(nodes_.size());
  for (const Node& node : nodes_) results.nodes.push_back(*node.result);
  for (const MemberId id : waiting_for_a_place()) {
    const Join& join = members_.at(id).join;
    results.newcomers.push_back(
        {.host_name = join.host_name, .num_processes = join.num_processes});
  }
  phase_ = Phase::kEnding;
  if (host_) send(*host_, std::move(results));
}

void Rounds::give_verdict(const Verdict& verdict, Moment now) {
  for (const auto& [id, member] : members_) {
    if (id != host_ && member.node) send(id, verdict);
  }
  if (!verdict.is_restart) {
    finish();
    return;
  }
  ++attempt_;
  generation_ = verdict.keeps_state ? generation_ + 1 : 0;
  if (verdict.is_counted) ++num_restarts_;
  phase_ = Phase::kJoining;
  join_deadline_ns_ =
      now.ns + in_ns(config_.join_seconds + verdict.delay_seconds);
}

void Rounds::finish() {
  phase_ = Phase::kOver;
  for (const auto& [id, member] : members_) {
    if (!member.node && id != host_) {
      refuse(id, kEndedWithout);
    } else {
      dismissed_.push_back(id);
    }
  }
  dismiss_newcomers();
}

void Rounds::leave(MemberId member, const std::string& why, Moment now,
                   Fate fate) {
  newcomers_.erase(member);
  remove(member, why, now, fate);
  admit_newcomers(now);
  if (is_elastic() && phase_ == Phase::kJoining) form_world(now);
}

void Rounds::remove(MemberId member, const std::string& why, Moment now,
                    Fate fate) {
  if (!members_.contains(member)) return;
  Node* node = node_of(member);
  const Member gone = members_.at(member);
  members_.erase(member);
  if (host_ == member) host_.reset();
  if (node == nullptr) return;
  node->member.reset();
  if (fate == Fate::kUnknown) silent_.insert(*gone.node);
  const bool is_under_way =
      phase_ == Phase::kRunning || phase_ == Phase::kEnding;
  if (!is_under_way || node->result) return;
  node->result = NodeResult{.node = *gone.node,
                            .entry = node->entry,
                            .loss = why,
                            .may_live = fate == Fate::kUnknown,
                            .lost_at = now.unix,
                            .clock_offset = gone.clock_offset};
  // Also to those that wait for a save, which cannot complete any more.
  const bool is_cut = is_elastic() && fate == Fate::kUnknown;
  end_attempt({.kind = config_.keeps_state ? End::Kind::kSuspend
                       : is_cut            ? End::Kind::kCut
                                           : End::Kind::kFailure},
              std::nullopt);
  collect();
}

void Rounds::give_up_joining() {
  std::vector<std::string> names;
  std::vector<std::string> missing;
  names.reserve(members_.size());
  for (const auto& [id, member] : members_) {
    names.push_back(member.join.host_name);
  }
  std::sort(names.begin(), names.end());
  for (int node = 0; node < config_.num_nodes; ++node) {
    const bool is_there = std::any_of(
        members_.begin(), members_.end(), [node](const auto& entry) {
          return entry.second.node == node || entry.second.join.node == node;
        });
    if (!is_there) missing.push_back(std::to_string(node));
  }
  const bool has_numbers =
      !members_.empty() && members_.begin()->second.join.node;
  end_all(
      {.exit_code = kTimeoutExitCode,
       .text = fmt::format(
           "lockstep: waited {} for {}{} nodes, {} came ({}{}); start "
           "the others, look for their errors, or set another limit "
           "(--rdzv-conf join_timeout=SECONDS)\n",
           base::duration_text(config_.join_seconds),
           is_elastic() ? "at least " : "", fewest_nodes(), members_.size(),
           base::join(names, ", "),
           has_numbers ? "; without node " + base::join(missing, ", ") : "")});
}

void Rounds::tick(Moment now) {
  if (phase_ == Phase::kOver) return;
  std::vector<MemberId> silent;
  for (const auto& [id, member] : members_) {
    if (now.ns - member.heard_ns >= lost_after_ns()) silent.push_back(id);
  }
  for (const MemberId id : silent) {
    leave(id,
          fmt::format(
              "no sign of life for {}: the machine, its network or its "
              "launcher is stuck or gone",
              base::duration_text(config_.alive_seconds * config_.max_missed)),
          now, Fate::kUnknown);
    lost_.push_back(id);
  }
  grow(now);
  let_leavers_go(now);
  if (phase_ == Phase::kJoining && now.ns >= join_deadline_ns_) {
    form_world(now);
    if (phase_ == Phase::kJoining) give_up_joining();
  }
  if (phase_ == Phase::kOver) return;
  refuse_late_newcomers(now);
  if (now.ns < next_alive_ns_) return;
  next_alive_ns_ = now.ns + in_ns(config_.alive_seconds);
  for (const auto& [id, member] : members_) send(id, Alive{});
  for (const auto& [id, newcomer] : newcomers_) send(id, Alive{});
}

int64_t Rounds::next_deadline_ns() const {
  if (phase_ == Phase::kOver) return INT64_MAX;
  int64_t next = next_alive_ns_;
  if (phase_ == Phase::kJoining) next = std::min(next, join_deadline_ns_);
  if (last_call_ns_) next = std::min(next, *last_call_ns_);
  if (growth_ns_) next = std::min(next, *growth_ns_);
  if (leave_ns_) next = std::min(next, *leave_ns_);
  for (const auto& [id, member] : members_) {
    next = std::min(next, member.heard_ns + lost_after_ns());
  }
  for (const auto& [id, newcomer] : newcomers_) {
    next = std::min(next, newcomer.came.ns + join_ns());
  }
  return next;
}

}  // namespace lockstep::nodes
