#include "lockstep/launch/nodes_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"
#include "lockstep/nodes/secret_file.h"

namespace lockstep::launch {
namespace {

constexpr int kStaticPort = 29500;  // torchrun's
constexpr int kJoinPort = 29400;    // torchrun's

bool has_bounds(const RunOptions& options) {
  return options.num_nodes < options.max_nodes;
}

// 1:MAX without a place to meet is one node, too.
bool is_alone(const RunOptions& options) {
  return options.num_nodes == 1 &&
         (!has_bounds(options) || options.standalone ||
          options.endpoint.empty());
}

// "3", "2:4"
std::string nnodes_text(const RunOptions& options) {
  return has_bounds(options)
             ? fmt::format("{}:{}", options.num_nodes, options.max_nodes)
             : std::to_string(options.num_nodes);
}

void refuse_contradictions(const RunOptions& options) {
  if (is_alone(options)) {
    if (options.node_rank.value_or(0) == 0) return;
    throw ConfigError(fmt::format("--node-rank {} needs --nnodes {} or more",
                                  *options.node_rank, *options.node_rank + 1));
  }
  if (options.standalone) {
    throw ConfigError("--standalone is for one node; leave it or --nnodes out");
  }
  const bool has_number = options.node_rank && options.backend != "c10d";
  if (has_bounds(options) &&
      (has_number || options.backend == "static" || options.endpoint.empty())) {
    throw ConfigError(fmt::format(
        "--nnodes {}: nodes that come and go cannot have fixed numbers; give "
        "every node --rdzv-endpoint HOST and no --node-rank, or one number: "
        "--nnodes {}",
        nnodes_text(options), options.max_nodes));
  }
  if (options.node_rank.value_or(0) >= options.max_nodes) {
    throw ConfigError(fmt::format("--node-rank {} must be below --nnodes {}",
                                  *options.node_rank, options.num_nodes));
  }
}

Endpoint master_of(const RunOptions& options,
                   const base::Environment& environment) {
  if (!options.endpoint.empty()) {
    return parse_endpoint(options.endpoint,
                          options.master_port.value_or(kStaticPort));
  }
  Endpoint master{.host = options.master_addr,
                  .port = options.master_port.value_or(0)};
  if (master.host.empty()) {
    master.host =
        base::find(environment, "MASTER_ADDR").value_or(options.local_addr);
  }
  if (master.host.empty()) {
    throw ConfigError(fmt::format(
        "--nnodes {}: where is node 0? Give every node --master-addr ADDRESS "
        "and its own --node-rank, or --rdzv-endpoint HOST to join in any order",
        options.num_nodes));
  }
  if (const auto text = base::find(environment, "MASTER_PORT");
      text && !options.master_port) {
    master.port = parse_port(*text, "MASTER_PORT");
  }
  if (master.port == 0) master.port = kStaticPort;
  return master;
}

void require_secret(const RunOptions& options, const Endpoint& endpoint) {
  if (!options.secret_file.empty() || options.no_secret ||
      net::is_loopback_host(endpoint.host)) {
    return;
  }
  throw ConfigError(fmt::format(
      "--rdzv-endpoint {}: without a secret anyone who reaches port {} could "
      "join the job. Make one ('head -c 32 /dev/urandom | base64 > job.secret; "
      "chmod 600 job.secret'), copy it to every node and give all "
      "--rdzv-secret-file job.secret; on a network that nobody else uses "
      "--rdzv-no-secret does without",
      endpoint.host, endpoint.port));
}

}  // namespace

int parse_port(const std::string& text, const std::string& source) {
  const auto port = base::parse_integer(text);
  if (!port || *port < 0 || *port > 65535) {
    throw ConfigError(
        fmt::format("{} '{}' is not a port number", source, text));
  }
  return static_cast<int>(*port);
}

std::string endpoint_text(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "",
                     port);
}

Endpoint parse_endpoint(const std::string& text, int default_port) {
  constexpr const char* kSource = "the port of --rdzv-endpoint";
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    const std::string rest =
        end == std::string::npos ? "?" : text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') {
      throw ConfigError(
          fmt::format("--rdzv-endpoint '{}' must be HOST:PORT or "
                      "[IPV6-ADDRESS]:PORT",
                      text));
    }
    return {.host = text.substr(1, end - 1),
            .port = rest.empty() ? default_port
                                 : parse_port(rest.substr(1), kSource)};
  }
  const size_t colon = text.find(':');
  const bool is_ipv6 = colon != text.rfind(':');
  if (colon == std::string::npos || is_ipv6) return {text, default_port};
  return {text.substr(0, colon), parse_port(text.substr(colon + 1), kSource)};
}

NodesPlan plan_nodes(const RunOptions& options,
                     const base::Environment& environment) {
  refuse_contradictions(options);
  NodesPlan plan;
  if (is_alone(options)) return plan;
  plan.num_nodes = options.max_nodes;
  if (has_bounds(options)) plan.min_nodes = options.num_nodes;
  plan.settings = options.rendezvous;
  if (!options.secret_file.empty()) {
    plan.secret = nodes::read_secret_file(options.secret_file);
  }
  const bool is_static =
      !plan.is_elastic() && (options.backend == "static" || options.node_rank ||
                             options.endpoint.empty());
  if (is_static && !options.node_rank) {
    throw ConfigError(fmt::format(
        "--nnodes {}: which node is this? Give every node its own --node-rank "
        "from 0 to {}, or --rdzv-endpoint HOST to join in any order",
        options.num_nodes, options.num_nodes - 1));
  }
  Endpoint meeting;
  if (is_static) {
    plan.mode = NodesPlan::Mode::kStatic;
    plan.node_rank = *options.node_rank;
    meeting = master_of(options, environment);
  } else {
    plan.mode = NodesPlan::Mode::kJoin;
    meeting = parse_endpoint(options.endpoint, kJoinPort);
    if (meeting.port == 0) {
      throw ConfigError("--rdzv-endpoint needs a port that all nodes know");
    }
    require_secret(options, meeting);
  }
  plan.address = meeting.host;
  plan.port = meeting.port;
  return plan;
}

}  // namespace lockstep::launch
