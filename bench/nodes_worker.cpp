// Launchers without workers, for bench/nodes.py:
//
//   rendezvous NODES    a world of so many launchers in this process
//   hostile PORT COUNT  so many strangers at a launcher's port
//   besiege COUNT       so many at a world of two launchers in this process
#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/net/address.h"
#include "lockstep/nodes/node_link.h"
#include "lockstep/nodes/node_server.h"
#include "support/hostile.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The next message of this kind.
template <typename Type>
void wait_for(nodes::NodeLink& link) {
  while (true) {
    while (const auto message = link.next()) {
      if (std::holds_alternative<Type>(*message)) return;
    }
    if (const auto loss = link.loss()) {
      std::fprintf(stderr, "nodes_worker: %s\n", loss->reason.c_str());
      std::_Exit(1);  // Threads of other links still run.
    }
    pollfd entry{.fd = link.fd(), .events = POLLIN, .revents = 0};
    poll(&entry, 1, -1);
  }
}

void allow_many_files() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int rendezvous(int num_nodes) {
  allow_many_files();
  const nodes::JobIdentity job = nodes::identify_job("a secret", "bench");
  base::FileDescriptor listener = net::listen_at(
      net::resolve("127.0.0.1", 0).addresses.at(0), net::PortUse::kExclusive);
  const int port = net::local_address_of(listener.get()).port();
  const auto begin = Clock::now();
  nodes::NodeServer server(std::move(listener),
                           {.rounds = {.num_nodes = num_nodes}, .job = job});
  std::vector<std::unique_ptr<nodes::NodeLink>> links;
  for (int node = 0; node < num_nodes; ++node) {
    links.push_back(std::make_unique<nodes::NodeLink>(
        nodes::NodeLinkConfig{.host = "127.0.0.1", .port = port, .job = job}));
    links.back()->send(nodes::Join{.num_nodes = num_nodes,
                                   .num_processes = 8,
                                   .is_host = node == 0,
                                   .host_name = "node" + std::to_string(node),
                                   .master_addr = "127.0.0.1",
                                   .master_port = port});
  }
  for (auto& link : links) wait_for<nodes::World>(*link);
  const double world = seconds_since(begin);
  // A failure of one node, reports of 8 ranks from every node, and the verdict.
  const auto failed = Clock::now();
  links.back()->send(nodes::Ending{});
  for (size_t i = 0; i + 1 < links.size(); ++i) wait_for<nodes::End>(*links[i]);
  for (auto& link : links) {
    link->send(nodes::Result{.text = std::string(8 * 400, 'r')});
  }
  wait_for<nodes::Results>(*links[0]);
  links[0]->send(nodes::Verdict{.exit_code = 1, .text = "why"});
  for (size_t i = 1; i < links.size(); ++i) wait_for<nodes::Verdict>(*links[i]);
  std::printf("{\"nodes\": %d, \"world_s\": %.4f, \"verdict_s\": %.4f}\n",
              num_nodes, world, seconds_since(failed));
  links.clear();
  return 0;
}

int hostile(int port, int64_t count) {
  const auto begin = Clock::now();
  const testing::HostileCounts counts =
      testing::connect_as_stranger(port, count);
  std::printf("{\"opened\": %ld, \"refused\": %ld, \"seconds\": %.2f}\n",
              static_cast<long>(counts.opened),
              static_cast<long>(counts.refused), seconds_since(begin));
  return 0;
}

// A world of two launchers that strangers do not disturb, in this process: for
// runs under a sanitizer.
int besiege(int64_t count) {
  const nodes::JobIdentity job = nodes::identify_job("a secret", "bench");
  base::FileDescriptor listener = net::listen_at(
      net::resolve("127.0.0.1", 0).addresses.at(0), net::PortUse::kExclusive);
  const int port = net::local_address_of(listener.get()).port();
  nodes::NodeServer server(std::move(listener),
                           {.rounds = {.num_nodes = 2}, .job = job});
  const nodes::NodeLinkConfig config{
      .host = "127.0.0.1", .port = port, .job = job};
  nodes::NodeLink host(config);
  nodes::NodeLink other(config);
  host.send(nodes::Join{
      .num_nodes = 2, .is_host = true, .host_name = "a", .master_port = port});
  other.send(nodes::Join{.num_nodes = 2, .host_name = "b"});
  wait_for<nodes::World>(host);
  wait_for<nodes::World>(other);
  hostile(port, count);
  other.send(nodes::Note{"still here"});
  wait_for<nodes::Note>(host);
  host.send(nodes::Result{});
  other.send(nodes::Result{});
  wait_for<nodes::Results>(host);
  host.send(nodes::Verdict{});
  wait_for<nodes::Verdict>(other);
  for (const std::string& line : server.refusals().take_all()) {
    std::puts(line.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "rendezvous" && argc == 3) return rendezvous(std::stoi(argv[2]));
  if (mode == "hostile" && argc == 4) {
    return hostile(std::stoi(argv[2]), std::stoll(argv[3]));
  }
  if (mode == "besiege" && argc == 3) return besiege(std::stoll(argv[2]));
  std::fputs(
      "usage: nodes_worker rendezvous NODES | hostile PORT COUNT | besiege "
      "COUNT\n",
      stderr);
  return 2;
}
