#include "lockstep/launch/static_meeting.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Between looks at the control pipe.
constexpr milliseconds kSlice{100};
constexpr milliseconds kReply{30000};
constexpr double kExitBarrierSeconds = 300;  // torchrun's

std::string role_key(int node) {
  return fmt::format("torchelastic/role_info/{}", node);
}
std::string ranks_key(int node) {
  return fmt::format("torchelastic/assigned_ranks/{}", node);
}
// Written by launchers of Lockstep alone.
std::string launcher_key(int node) {
  return fmt::format("lockstep-launchers/{}", node);
}
constexpr const char* kChannelKey = "lockstep-launchers/channel";
constexpr const char* kEndKey = "torchelastic/agent/terminal_state";

struct RoleInfo {
  std::string role;
  int num_processes = 0;
};

// What anybody may have written into the store.
std::optional<int> count_in(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<int64_t>();
  if (number < 0 || number > INT32_MAX / 2) return std::nullopt;
  return static_cast<int>(number);
}

RoleInfo parse_role(const std::string& text, int node) {
  const json value = json::parse(text, nullptr, false);
  try {
    const auto count = value.is_discarded()
                           ? std::nullopt
                           : count_in(value.at("local_world_size"));
    if (count) {
      return {.role = value.at("role").get<std::string>(),
              .num_processes = *count};
    }
  } catch (const json::exception&) {
    // The error below says it.
  }
  throw PeerError(fmt::format(
      "node {} wrote something else than torchrun's launchers into the store: "
      "is another job at this master address and port?",
      node));
}

}  // namespace

StaticMeeting::StaticMeeting(const Plan& plan, IsCancelled is_cancelled)
    : plan_(plan), is_cancelled_(std::move(is_cancelled)) {}

// torchrun puts the name of the run before every key.
std::string StaticMeeting::key(const std::string& name) const {
  return plan_.run_id + "/" + name;
}

bool StaticMeeting::connect() {
  const NodesPlan& nodes = plan_.nodes;
  const int64_t begin = base::monotonic_ns();
  while (!is_cancelled_()) {
    store_ = net::StoreClient::connect(
        {.host = nodes.address,
         .port = nodes.port,
         .search_timeout = kSlice,
         .reply_timeout = kReply,
         .allowed_host = net::StoreClientConfig::Host::kAnyone});
    if (store_ != nullptr) return true;
    if (base::seconds_between(begin, base::monotonic_ns()) >=
        nodes.settings.join_timeout) {
      throw TimeoutError(fmt::format(
          "node 0 was not found at {}:{} within {}: start it there, check "
          "address, port and firewall, or set another limit (--rdzv-conf "
          "join_timeout=SECONDS)",
          nodes.address, nodes.port,
          base::duration_text(nodes.settings.join_timeout)));
    }
  }
  return false;
}

// False when cancelled or late.
bool StaticMeeting::wait_for(const std::vector<std::string>& keys,
                             double seconds) {
  const int64_t begin = base::monotonic_ns();
  while (!is_cancelled_()) {
    try {
      store_->wait(keys, kSlice);
      return true;
    } catch (const TimeoutError&) {
      if (base::seconds_between(begin, base::monotonic_ns()) >= seconds) {
        return false;
      }
    }
  }
  return false;
}

void StaticMeeting::introduce() {
  const int node = plan_.nodes.node_rank;
  // torchrun's node 0 counts its clients there.
  store_->count_as_worker();
  store_->set(key(launcher_key(node)), "1");
  store_->set(key(role_key(node)),
              json{{"role", plan_.options.role},
                   {"rank", node},
                   {"local_world_size", plan_.num_processes}}
                  .dump());
}

// The store of an attempt that just ended goes with it.
std::optional<StaticPlaces> StaticMeeting::meet(
    const std::optional<ChannelNote>& channel) {
  const int64_t begin = base::monotonic_ns();
  while (true) {
    try {
      return meet_once(channel);
    } catch (const TimeoutError&) {
      throw;
    } catch (const PeerError&) {
      if (base::seconds_between(begin, base::monotonic_ns()) >=
          plan_.nodes.settings.join_timeout) {
        throw;
      }
    }
  }
}

std::optional<StaticPlaces> StaticMeeting::meet_once(
    const std::optional<ChannelNote>& channel) {
  if (!connect()) return std::nullopt;
  introduce();
  if (plan_.nodes.node_rank == 0) wait_for_nodes();
  if (is_cancelled_()) return std::nullopt;
  if (plan_.nodes.node_rank == 0) assign(channel);
  wait_for_ranks();
  if (is_cancelled_()) return std::nullopt;
  const json ranks = json::parse(
      store_->get(key(ranks_key(plan_.nodes.node_rank))), nullptr, false);
  std::vector<int> numbers;
  for (const json& value : ranks.is_array() ? ranks : json::array()) {
    if (const auto number = count_in(value)) numbers.push_back(*number);
  }
  if (numbers.size() != 4) {
    throw PeerError("node 0 assigned no ranks to this node");
  }
  return StaticPlaces{.first_rank = numbers[0],
                      .num_ranks = numbers[1],
                      .first_role_rank = numbers[2],
                      .role_size = numbers[3],
                      .channel = find_channel()};
}

void StaticMeeting::wait_for_nodes() {
  const NodesPlan& nodes = plan_.nodes;
  std::vector<std::string> keys;
  for (int node = 0; node < nodes.num_nodes; ++node) {
    keys.push_back(key(role_key(node)));
  }
  if (wait_for(keys, nodes.settings.join_timeout) || is_cancelled_()) return;
  std::vector<int> missing;
  for (int node = 0; node < nodes.num_nodes; ++node) {
    if (!store_->check({keys[static_cast<size_t>(node)]})) {
      missing.push_back(node);
    }
  }
  throw TimeoutError(fmt::format(
      "waited {} for {} nodes; without node {}: start it with --node-rank "
      "and this --master-addr, --master-port and --rdzv-id, look for its "
      "error, or set another limit (--rdzv-conf join_timeout=SECONDS)",
      base::duration_text(nodes.settings.join_timeout), nodes.num_nodes,
      base::list_of(missing)));
}

void StaticMeeting::wait_for_ranks() {
  const NodesPlan& nodes = plan_.nodes;
  if (wait_for({key(ranks_key(nodes.node_rank))},
               nodes.settings.join_timeout) ||
      is_cancelled_()) {
    return;
  }
  throw TimeoutError(fmt::format(
      "waited {} for all {} nodes at node 0 ({}:{}); start the others, look "
      "for their errors, or set another limit (--rdzv-conf "
      "join_timeout=SECONDS)",
      base::duration_text(nodes.settings.join_timeout), nodes.num_nodes,
      nodes.address, nodes.port));
}

void StaticMeeting::offer_again(const ChannelNote& channel) {
  if (!connect()) return;
  store_->set(key(kChannelKey),
              fmt::format("{} {}", channel.port, channel.key));
  // The channel tells the ranks; these show that there is one.
  for (int node = 0; node < plan_.nodes.num_nodes; ++node) {
    store_->set(key(ranks_key(node)), "[0, 0, 0, 0]");
  }
}

// As torchrun's node 0 does it, with the channel before the ranks: who has got
// ranks knows whether there is one.
void StaticMeeting::assign(const std::optional<ChannelNote>& channel) {
  const int num_nodes = plan_.nodes.num_nodes;
  std::vector<RoleInfo> infos;
  std::map<std::string, int> role_sizes;
  int num_ranks = 0;
  bool are_all_ours = true;
  for (int node = 0; node < num_nodes; ++node) {
    infos.push_back(parse_role(store_->get(key(role_key(node))), node));
    role_sizes[infos.back().role] += infos.back().num_processes;
    num_ranks += infos.back().num_processes;
    are_all_ours = are_all_ours && store_->check({key(launcher_key(node))});
  }
  if (are_all_ours && channel) {
    store_->set(key(kChannelKey),
                fmt::format("{} {}", channel->port, channel->key));
  }
  std::vector<std::string> keys;
  std::vector<std::string> values;
  std::map<std::string, int> next_role_rank;
  int next_rank = 0;
  for (int node = 0; node < num_nodes; ++node) {
    const RoleInfo& info = infos[static_cast<size_t>(node)];
    int& role_rank = next_role_rank[info.role];
    keys.push_back(key(ranks_key(node)));
    values.push_back(
        json{next_rank, num_ranks, role_rank, role_sizes[info.role]}.dump());
    next_rank += info.num_processes;
    role_rank += info.num_processes;
  }
  store_->multi_set(keys, values);
}

std::optional<ChannelNote> StaticMeeting::find_channel() {
  if (!store_->check({key(kChannelKey)})) return std::nullopt;
  const auto parts = base::split(store_->get(key(kChannelKey)), ' ');
  const auto port = base::parse_integer(parts[0]);
  if (parts.size() != 2 || !port || *port < 1 || *port > 65535) {
    throw PeerError("node 0 names no port of its launcher");
  }
  return ChannelNote{.port = static_cast<int>(*port), .key = parts[1]};
}

void StaticMeeting::wait_for_end() noexcept {
  try {
    const std::string last = key(std::string(kEndKey) + "/last_member");
    if (store_->add(key(std::string(kEndKey) + "/num_members"), 1) ==
        plan_.nodes.num_nodes) {
      store_->set(last, "<val_ignored>");
    }
    wait_for({last}, kExitBarrierSeconds);
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace lockstep::launch
