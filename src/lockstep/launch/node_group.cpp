#include "lockstep/launch/node_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/hex.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/node_changes.h"
#include "lockstep/launch/node_results.h"
#include "lockstep/launch/worker.h"
#include "lockstep/net/address.h"
#include "lockstep/nodes/proof.h"

namespace lockstep::launch {
namespace {

using Mode = NodesPlan::Mode;

JobVerdict from_message(const nodes::Verdict& message) {
  JobVerdict verdict{.is_restart = message.is_restart,
                     .is_counted = message.is_counted,
                     .keeps_state = message.keeps_state,
                     .delay_seconds = message.delay_seconds,
                     .exit_code = message.exit_code,
                     .text = message.text,
                     .stop_signal = message.stop_signal,
                     .departed = message.departed};
  if (!message.cause.empty()) verdict.cause = decode_failure(message.cause);
  return verdict;
}

nodes::Verdict to_message(const JobVerdict& verdict) {
  return {.is_restart = verdict.is_restart,
          .is_counted = verdict.is_counted,
          .keeps_state = verdict.keeps_state,
          .delay_seconds = verdict.delay_seconds,
          .exit_code = verdict.exit_code,
          .stop_signal = verdict.stop_signal,
          .text = verdict.text,
          .cause = verdict.cause ? encode_failure(*verdict.cause) : "",
          .departed = verdict.departed};
}

// One of every node, beside what the keeper needs for itself.
void allow_connections(int num_nodes) {
  const auto needed = static_cast<rlim_t>(num_nodes) * 2 + 512;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed) return;
  files.rlim_cur = std::min(needed, files.rlim_max);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

NodeGroup::NodeGroup(const Plan& plan, ControlReader& control, Say say)
    : plan_(plan), control_(control), say_(std::move(say)) {
  if (plan_.nodes.mode == Mode::kStatic) {
    is_host_ = plan_.nodes.node_rank == 0;
    store_address_ = plan_.nodes.address;
    meeting_.emplace(plan_, [this] { return is_cancelled(); });
  } else {
    try_to_host();
  }
}

// The last words of this node go out before the server closes.
NodeGroup::~NodeGroup() {
  link_.reset();
  server_.reset();
}

// Another launcher of this machine, or of another job, may have the port.
void NodeGroup::try_to_host() {
  const NodesPlan& nodes = plan_.nodes;
  for (const net::SocketAddress& address :
       net::addresses_for_others(nodes.address, nodes.port)) {
    listener_ = net::listen_at(address, net::PortUse::kReuse);
    if (!listener_) continue;
    is_host_ = true;
    store_address_ = address.is_any() ? nodes.address : address.text();
    return;
  }
}

nodes::JobIdentity NodeGroup::identity() const {
  return nodes::identify_job(
      plan_.nodes.secret.empty() ? channel_key_ : plan_.nodes.secret,
      plan_.run_id);
}

void NodeGroup::open_channel(const std::string& host, int port) {
  const RendezvousSettings& settings = plan_.nodes.settings;
  if (is_host_) {
    allow_connections(plan_.nodes.num_nodes);
    server_ = std::make_unique<nodes::NodeServer>(
        std::move(listener_),
        nodes::NodeServerConfig{
            .rounds = {.num_nodes = plan_.nodes.num_nodes,
                       .min_nodes = plan_.nodes.min_nodes,
                       .keeps_state = plan_.recovers_in_memory,
                       .join_seconds = settings.join_timeout,
                       .last_call_seconds = settings.last_call_timeout,
                       .alive_seconds = settings.keep_alive_interval,
                       .max_missed = settings.keep_alive_max_attempt,
                       .lost_world = succession_.lost_world(settings)},
            .job = identity()});
  }
  open_link(host, port, settings.join_timeout);
}

void NodeGroup::open_link(const std::string& host, int port,
                          double join_seconds) {
  const RendezvousSettings& settings = plan_.nodes.settings;
  host_address_ = host;
  link_ = std::make_unique<nodes::NodeLink>(
      nodes::NodeLinkConfig{.host = host,
                            .port = port,
                            .job = identity(),
                            .join_seconds = join_seconds,
                            .alive_seconds = settings.keep_alive_interval,
                            .max_missed = settings.keep_alive_max_attempt});
}

nodes::Join NodeGroup::join_message(const std::optional<OfferedStore>& store,
                                    bool holds_state) const {
  nodes::Join join{.num_nodes = plan_.nodes.num_nodes,
                   .min_nodes = plan_.nodes.min_nodes,
                   .num_processes = plan_.num_processes,
                   .is_host = is_host_,
                   .host_name = base::host_name(),
                   .unix_time = unix_now(),
                   .job = job_.empty() ? plan_.job : job_,
                   .keeps_state = plan_.recovers_in_memory,
                   .holds_state = holds_state,
                   .former = succession_.former_place()};
  if (plan_.nodes.mode == Mode::kStatic) join.node = plan_.nodes.node_rank;
  if (store) {
    join.master_addr = store_address_;
    join.master_port = store->port;
    join.store_secret = store->secret;
  }
  return join;
}

bool NodeGroup::is_cancelled() {
  take_signals();
  return end_.has_value();
}

// Static nodes: through the store of node 0. A world only where there is no
// channel to get it from.
std::optional<JobWorld> NodeGroup::meet(
    const std::optional<OfferedStore>& store) {
  const NodesPlan& nodes = plan_.nodes;
  if (is_host_) {
    for (const net::SocketAddress& address :
         net::addresses_for_others(nodes.address, 0)) {
      listener_ = net::listen_at(address, net::PortUse::kExclusive);
      if (listener_) break;
    }
    if (!listener_) {
      throw IoError(fmt::format("cannot listen at {} for the other nodes: {}",
                                nodes.address, base::errno_text()));
    }
    offer_ = ChannelNote{
        .port = net::local_address_of(listener_.get()).port(),
        .key = nodes.secret.empty()
                   ? base::to_hex(nodes::random_bytes(nodes::kDigestBytes))
                   : ""};
  }
  const auto places = meeting_->meet(offer_);
  if (!places) return std::nullopt;
  if (places->channel) {
    if (places->channel->key.empty() != !nodes.secret.empty()) {
      throw ConfigError(
          "node 0 and this node disagree about --rdzv-secret-file: give every "
          "node the same, or none");
    }
    channel_key_ = places->channel->key;
    open_channel(nodes.address, places->channel->port);
    return std::nullopt;
  }
  listener_.reset();
  if (plan_.recovers_in_memory) {
    throw ConfigError(
        "--recover memory: not every node runs lockstep run, and other "
        "launchers cannot keep the state of their ranks; leave it out");
  }
  say_(
      "not every node runs lockstep run: failures on other nodes show as lost "
      "connections only, and nothing is restarted");
  return JobWorld{.node = nodes.node_rank,
                  .num_nodes = nodes.num_nodes,
                  .first_rank = places->first_rank,
                  .num_ranks = places->num_ranks,
                  .first_role_rank = places->first_role_rank,
                  .role_size = places->role_size,
                  .master_addr = nodes.address,
                  .master_port = store ? store->port : nodes.port,
                  .job = plan_.job};
}

void NodeGroup::say_that_it_forms() const {
  const NodesPlan& nodes = plan_.nodes;
  const std::string fewest =
      nodes.is_elastic() ? fmt::format("{} to ", nodes.min_nodes) : "";
  say_(fmt::format("{} {}{} nodes at {}", is_host_ ? "waiting for" : "joining",
                   fewest, nodes.num_nodes,
                   endpoint_text(nodes.address, nodes.port)));
}

void NodeGroup::say_who_is_there(const JobWorld& world) const {
  if (!plan_.nodes.is_elastic()) return;
  say_(fmt::format("start {}: node {} of {}, {} processes in all",
                   world.attempt + 1, world.node, world.num_nodes,
                   world.num_ranks));
}

NodeGroup::Formed NodeGroup::form(int attempt,
                                  const std::optional<OfferedStore>& store,
                                  bool holds_state) {
  is_waiting_for_others_ = false;
  if (attempt == 0) say_that_it_forms();
  if (attempt == 0 && plan_.nodes.mode == Mode::kStatic) {
    if (auto world = meet(store)) return {.world = std::move(world)};
    if (end_) return {.end = *end_};
  } else if (attempt == 0) {
    open_channel(plan_.nodes.address, plan_.nodes.port);
  } else if (is_host_ && meeting_) {
    meeting_->offer_again(*offer_);
  }
  link_->set_stuck(false);  // That was the last start.
  link_->send(join_message(store, holds_state));
  while (const auto message = next_message()) {
    if (const auto* world = std::get_if<nodes::World>(&*message)) {
      JobWorld result{.attempt = world->attempt,
                      .num_restarts = world->num_restarts,
                      .generation = world->generation,
                      .node = world->node,
                      .num_nodes = world->num_nodes,
                      .first_rank = world->first_rank,
                      .num_ranks = world->num_ranks,
                      .first_role_rank = world->first_rank,
                      .role_size = world->num_ranks,
                      .master_addr = world->master_addr,
                      .master_port = world->master_port,
                      .store_secret = world->store_secret,
                      .job = world->job};
      job_ = world->job;
      if (plan_.nodes.is_elastic()) succession_.begin(*world);
      say_who_is_there(result);
      return {.world = std::move(result)};
    }
    if (const auto* verdict = std::get_if<nodes::Verdict>(&*message)) {
      return {.end = from_message(*verdict)};
    }
    if (const auto* refusal = std::get_if<nodes::Refusal>(&*message)) {
      throw ConfigError("this node cannot join: " + refusal->reason);
    }
    if (const auto* queued = std::get_if<nodes::Queued>(&*message)) {
      say_(queued->reason);
    }
  }
  if (end_) return {.end = *end_};
  return {.end = find_new_host(*std::exchange(lost_host_, std::nullopt))};
}

JobVerdict NodeGroup::agree(const AttemptResult& own, const JobWorld& world,
                            JobJudge& judge, double attempt_seconds) {
  if (link_ == nullptr || own.kind == AttemptResult::Kind::kAbandoned) {
    return judge_alone(own, world, judge, attempt_seconds);
  }
  is_waiting_for_others_ = true;
  link_->send(nodes::Result{
      .text = encode_result(own, max_result_bytes(world.num_nodes))});
  if (const auto verdict = wait_for_verdict(world, judge, attempt_seconds)) {
    if (!verdict->is_restart) return *verdict;
    if (own.is_leaving) return stop_here(*verdict, SIGTERM);
    if (asked_signal_ != 0) {
      announce_stop(asked_signal_);
      return stop_here(*verdict, asked_signal_);
    }
    if (verdict->departed.empty()) return *verdict;
    succession_.depart(verdict->departed);
    JobVerdict next = follow_new_host(verdict->text);
    next.keeps_state = next.keeps_state && verdict->keeps_state;
    return next;
  }
  if (!end_) return go_on_without_host(own, world, judge, attempt_seconds);
  return judge_lost(own, world, judge, attempt_seconds);
}

// What this node knows itself stands before what it lost.
JobVerdict NodeGroup::judge_lost(const AttemptResult& own,
                                 const JobWorld& world, JobJudge& judge,
                                 double attempt_seconds) {
  using Kind = AttemptResult::Kind;
  AttemptResult ended = own;
  // Ranks that wait in memory for a world that does not come.
  if (ended.kind == Kind::kSuspended) {
    ended.kind = ended.failures.empty() ? Kind::kEnded : Kind::kFailure;
  }
  JobVerdict verdict = judge.judge(ended, plan_.options.max_restarts,
                                   attempt_seconds, world.num_ranks);
  if (ended.kind != Kind::kFailure) verdict.exit_code = end_->exit_code;
  verdict.text += end_->text;
  return verdict;
}

// No value: end_ says why none comes, or the host is lost.
std::optional<JobVerdict> NodeGroup::wait_for_verdict(const JobWorld& world,
                                                      JobJudge& judge,
                                                      double attempt_seconds) {
  while (const auto message = next_message()) {
    if (const auto* results = std::get_if<nodes::Results>(&*message)) {
      std::optional<NodeChanges> changes;
      if (plan_.nodes.is_elastic()) changes = changes_in(*results);
      JobVerdict verdict =
          judge.judge(merge_results(*results), world.num_restarts,
                      attempt_seconds, world.num_ranks, changes);
      link_->send(to_message(verdict));
      return verdict;
    }
    if (const auto* verdict = std::get_if<nodes::Verdict>(&*message)) {
      return from_message(*verdict);
    }
  }
  return std::nullopt;
}

// The others start again.
JobVerdict NodeGroup::stop_here(const JobVerdict& verdict, int signal) {
  return {
      .exit_code = 128 + signal, .text = verdict.text, .stop_signal = signal};
}

JobVerdict NodeGroup::judge_alone(const AttemptResult& own,
                                  const JobWorld& world, JobJudge& judge,
                                  double attempt_seconds) {
  if (own.kind == AttemptResult::Kind::kSuccess && meeting_) {
    meeting_->wait_for_end();
  }
  return judge.judge(own, plan_.options.max_restarts, attempt_seconds,
                     world.num_ranks);
}

bool NodeGroup::may_leave(const JobWorld& world) const {
  return plan_.nodes.is_elastic() && world.num_nodes > plan_.nodes.min_nodes;
}

bool NodeGroup::leaves_on(int signal) const {
  return plan_.nodes.is_elastic() && !is_host_ && signal == SIGTERM;
}

void NodeGroup::announce_stop(int signal) {
  if (link_ == nullptr || leaves_on(signal)) return;
  link_->send(nodes::Ending{.signal = signal});
}

void NodeGroup::take_signals() {
  const auto& stop_signals = plan_.options.stop_signals;
  for (const int signal : control_.read()) {
    if (std::find(stop_signals.begin(), stop_signals.end(), signal) ==
        stop_signals.end()) {
      continue;
    }
    const std::string name = base::signal_name(signal);
    const bool leaves = leaves_on(signal);
    announce_stop(signal);
    // The others end, or start again without this node, which gets the verdict;
    // who asks twice does not wait for it.
    if (is_waiting_for_others_ && link_ != nullptr && asked_signal_ == 0) {
      asked_signal_ = signal;
      say_(name + (leaves ? " received, this node waits for the end of the "
                            "others' processes"
                          : " received, ending the processes of the other "
                            "nodes"));
      continue;
    }
    const char* what = leaves                   ? "this node leaves the job"
                       : is_waiting_for_others_ ? "the other nodes are on "
                                                  "their own"
                                                : "the job does not start";
    end_ = JobVerdict{
        .exit_code = 128 + signal,
        .text = fmt::format("lockstep: {} received, {}\n", name, what),
        .stop_signal = signal};
  }
  if (control_.is_abandoned()) end_ = JobVerdict{.exit_code = 1};
}

std::optional<nodes::Message> NodeGroup::next_message() {
  while (!end_) {
    // Asked first: what came before the loss counts.
    const auto loss = link_->loss();
    if (auto message = link_->next()) return message;
    if (loss) {
      take_loss(*loss);
      break;
    }
    wait_for_news();
  }
  return std::nullopt;
}

void NodeGroup::wait_for_news() {
  // poll() ignores -1.
  const int refusals = server_ == nullptr ? -1 : server_->refusals().fd();
  std::array<pollfd, 3> entries = {
      {{.fd = control_.fd(), .events = POLLIN, .revents = 0},
       {.fd = link_->fd(), .events = POLLIN, .revents = 0},
       {.fd = refusals, .events = POLLIN, .revents = 0}}};
  poll(entries.data(), entries.size(), -1);
  if (entries[2].revents != 0) {
    for (const auto& line : server_->refusals().take_first()) say_(line);
  }
  take_signals();
}

std::vector<std::string> NodeGroup::take_notices() {
  if (server_ == nullptr) return {};
  return server_->refusals().take_all();
}

}  // namespace lockstep::launch
