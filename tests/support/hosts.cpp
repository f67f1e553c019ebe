#include "support/hosts.h"

#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

// Ends with this process, however that one ends.
constexpr const char* kHold =
    "echo ready; exec setpriv --pdeathsig KILL sleep 100000";

[[noreturn]] void refuse_system(const std::string& what,
                                const std::string& reason) {
  throw IoError(
      "hosts of network namespaces cannot be made here (" + what +
      "): " + reason +
      "; they need the programs unshare, nsenter, setpriv (util-linux) and ip "
      "(iproute2), kernel modules veth and bridge, and unprivileged user "
      "namespaces (sysctl kernel.unprivileged_userns_clone=1) or root");
}

std::unique_ptr<Process> hold(const std::vector<std::string>& command,
                              const std::string& what) {
  auto process = std::make_unique<Process>(
      command, ProcessOptions{.timeout_seconds = 1e6});
  if (!process->wait_for_output("ready", 60)) {
    refuse_system(what, process->err());
  }
  return process;
}

}  // namespace

Hosts::Hosts(int count, Family family) : family_(family) {
  switch_ = hold(
      {"/usr/bin/unshare", "--map-root-user", "--net", "/bin/sh", "-c", kHold},
      "a network of their own");
  run_in(*switch_, "ip link add br0 type bridge && ip link set br0 up");
  for (int host = 0; host < count; ++host) {
    const std::string number = std::to_string(host);
    hosts_.push_back(
        hold(enter(*switch_, {"/usr/bin/unshare", "--net", "--uts", "/bin/sh",
                              "-c", "hostname host" + number + " && " + kHold}),
             "a host"));
    run_in(*switch_, "ip link add v" + number +
                         " type veth peer name eth0 netns " +
                         std::to_string(hosts_.back()->pid()) +
                         " && ip link set v" + number + " master br0 up");
    // Without duplicate address detection the address can be used at once.
    const std::string add =
        family_ == Family::kIpv4
            ? "ip addr add " + address(host) + "/24 dev eth0"
            : "ip -6 addr add " + address(host) + "/64 dev eth0 nodad";
    run_in(*hosts_.back(),
           "ip link set lo up && ip link set eth0 up && " + add);
  }
}

Hosts::~Hosts() = default;

std::string Hosts::address(int host) const {
  return (family_ == Family::kIpv4 ? "10.77.0." : "fd77::") +
         std::to_string(host + 1);
}

std::vector<std::string> Hosts::enter(
    const Process& holder, const std::vector<std::string>& command) const {
  std::vector<std::string> words = {"/usr/bin/nsenter",
                                    "--target",
                                    std::to_string(holder.pid()),
                                    "--user",
                                    "--net",
                                    "--uts",
                                    "--preserve-credentials"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<std::string> Hosts::on(
    int host, const std::vector<std::string>& command) const {
  return enter(*hosts_.at(static_cast<size_t>(host)), command);
}

void Hosts::run_in(const Process& holder, const std::string& script) const {
  const ProcessResult result = run(enter(holder, {"/bin/sh", "-c", script}));
  if (result.exit_code != 0) refuse_system(script, result.err);
}

void Hosts::cut(int host) {
  run_in(*switch_, "ip link set v" + std::to_string(host) + " down");
}

void Hosts::mend(int host) {
  run_in(*switch_, "ip link set v" + std::to_string(host) + " up");
}

void Hosts::block_route(int from, int to) const {
  if (from == to) return;
  const std::string family = family_ == Family::kIpv4 ? "" : "-6 ";
  run_in(*hosts_.at(static_cast<size_t>(from)),
         "ip " + family + "route add blackhole " + address(to));
}

void Hosts::cut_outgoing(int host) {
  for (int other = 0; other < static_cast<int>(hosts_.size()); ++other) {
    block_route(host, other);
  }
}

void Hosts::cut_incoming(int host) {
  for (int other = 0; other < static_cast<int>(hosts_.size()); ++other) {
    block_route(other, host);
  }
}

}  // namespace lockstep::testing
