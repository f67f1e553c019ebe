// What launchers do when their host is lost; those of an elastic job go on.
#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/launch/node_group.h"
#include "lockstep/net/address.h"

namespace lockstep::launch {

void NodeGroup::take_loss(const nodes::LinkLoss& loss) {
  if (loss.kind == nodes::LinkLoss::Kind::kRefused) {
    throw ConfigError("this node cannot join: " + loss.reason);
  }
  if (loss.kind == nodes::LinkLoss::Kind::kNotFound) {
    throw TimeoutError(loss.reason);
  }
  if (succession_.is_possible()) {
    lost_host_ = loss;
  } else {
    end_for(loss);
  }
}

void NodeGroup::end_for(const nodes::LinkLoss& loss) {
  end_ = JobVerdict{
      .exit_code = kPeerExitCode,
      .text = fmt::format(
          "lockstep: {}; the job has ended there or its machine or network "
          "failed: look at the output of that launcher. No process of the job "
          "is left on this node\n",
          loss.reason)};
}

JobVerdict NodeGroup::go_on_without_host(const AttemptResult& own,
                                         const JobWorld& world, JobJudge& judge,
                                         double attempt_seconds) {
  const nodes::LinkLoss loss = *std::exchange(lost_host_, std::nullopt);
  const int signal = own.is_leaving ? SIGTERM : asked_signal_;
  if (signal != 0) return stop_here({}, signal);
  if (own.kind != AttemptResult::Kind::kStopped) return find_new_host(loss);
  end_for(loss);
  return judge_lost(own, world, judge, attempt_seconds);
}

// No process of the job runs on this node any more.
JobVerdict NodeGroup::find_new_host(const nodes::LinkLoss& loss) {
  link_.reset();
  if (is_port_closed(host_address_, plan_.nodes.port)) {
    succession_.lose_host();
  } else {
    succession_.lose_sight_of_host();
  }
  return follow_new_host("lockstep: " + loss.reason + "\n");
}

JobVerdict NodeGroup::follow_new_host(const std::string& reason) {
  is_waiting_for_others_ = false;
  is_host_ = false;
  link_.reset();
  for (const Succession::Candidate& candidate : succession_.candidates()) {
    const bool is_found = candidate.is_this_node ? host_at(candidate.address)
                                                 : reach(candidate.address);
    if (end_) return *end_;
    if (!is_found) continue;
    succession_.choose(candidate);
    const std::string what = candidate.is_this_node
                                 ? "waiting for the others as their host"
                                 : "joining the others at " + candidate.address;
    return {.is_restart = true,
            .is_counted = false,
            .keeps_state = true,
            .text = fmt::format("{}lockstep: {}\n", reason, what)};
  }
  return {.exit_code = kPeerExitCode,
          .text = reason +
                  "lockstep: no other node of the job was found. No process of "
                  "the job is left on this node\n"};
}

// At the address by which the former host knew this node.
bool NodeGroup::host_at(const std::string& address) {
  const net::Resolution found = net::resolve(address, plan_.nodes.port);
  if (found.addresses.empty()) return false;
  listener_ = net::listen_at(found.addresses[0], net::PortUse::kReuse);
  if (!listener_) return false;
  is_host_ = true;
  store_address_ = address;
  open_channel(address, plan_.nodes.port);
  return true;
}

// A node that hosts may notice later that the former host is lost.
bool NodeGroup::reach(const std::string& address) {
  open_link(address, plan_.nodes.port, silence_seconds(plan_.nodes.settings));
  while (!link_->is_found() && !link_->loss() && !end_) wait_for_news();
  if (link_->is_found()) return true;
  link_.reset();
  return false;
}

}  // namespace lockstep::launch
