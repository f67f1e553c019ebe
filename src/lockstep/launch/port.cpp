#include "lockstep/launch/port.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/launch/listeners.h"
#include "lockstep/net/address.h"

namespace lockstep::launch {
namespace {

std::string taken_text(int port, Reach reach) {
  const auto holder = find_port_holder(port);
  return fmt::format(
      "port {} (master port) is taken{}; {}", port,
      holder ? fmt::format(" by process {} ({})", holder->pid, holder->command)
             : " by another process or job",
      reach == Reach::kThisMachine
          ? "leave --master-port and MASTER_PORT out, a free one is chosen"
          : "give all nodes another --master-port");
}

// The first address of the name at which this machine can listen; errno holds
// why there is none.
base::FileDescriptor listen_at_any_of(const std::string& address, int port,
                                      Reach reach, net::PortUse use) {
  const auto candidates = reach == Reach::kOtherMachines
                              ? net::addresses_for_others(address, port)
                              : net::resolve(address, port).addresses;
  errno = EADDRNOTAVAIL;
  for (const net::SocketAddress& candidate : candidates) {
    if (base::FileDescriptor socket = net::listen_at(candidate, use))
      return socket;
  }
  return {};
}

}  // namespace

StoreSocket::StoreSocket(base::FileDescriptor listener)
    : listener_(std::move(listener)),
      port_(net::local_address_of(listener_.get()).port()) {}

StoreSocket StoreSocket::any(const std::string& address, Reach reach) {
  base::FileDescriptor listener =
      listen_at_any_of(address, 0, reach, net::PortUse::kExclusive);
  if (!listener) {
    throw IoError(fmt::format("cannot listen at a free port of {}: {}", address,
                              base::errno_text()));
  }
  return StoreSocket(std::move(listener));
}

StoreSocket StoreSocket::at(const std::string& address, int port, Reach reach) {
  base::FileDescriptor listener =
      listen_at_any_of(address, port, reach, net::PortUse::kReuse);
  if (!listener && errno == EACCES) {
    throw ConfigError(fmt::format(
        "port {} needs special rights; leave --master-port out", port));
  }
  if (!listener && errno == EADDRINUSE) {
    throw ConfigError(taken_text(port, reach));
  }
  if (!listener) {
    throw IoError(fmt::format("cannot listen at {}:{}: {}", address, port,
                              base::errno_text()));
  }
  return StoreSocket(std::move(listener));
}

void check_local_address(const std::string& address) {
  const net::Resolution found = net::resolve(address, 0);
  if (found.addresses.empty()) {
    throw ConfigError(fmt::format(
        "master address '{}' cannot be resolved ({}); leave --master-addr and "
        "MASTER_ADDR out",
        address, found.error));
  }
  for (const net::SocketAddress& candidate : found.addresses) {
    if (net::listen_at(candidate, net::PortUse::kExclusive)) return;
  }
  throw ConfigError(fmt::format(
      "master address '{}' is not an address of this machine; on one node "
      "leave --master-addr and MASTER_ADDR out, of several (--nnodes) start "
      "node 0 there",
      address));
}

}  // namespace lockstep::launch
