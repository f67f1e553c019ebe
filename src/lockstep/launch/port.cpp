#include "lockstep/launch/port.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/launch/listeners.h"
#include "lockstep/net/address.h"

namespace lockstep::launch {
namespace {

std::string taken_text(int port, TakenPort advice) {
  const auto holder = find_port_holder(port);
  return fmt::format(
      "port {} (master port) is taken{}; {}", port,
      holder ? fmt::format(" by process {} ({})", holder->pid, holder->command)
             : " by another process or job",
      advice == TakenPort::kLeaveOut
          ? "leave --master-port and MASTER_PORT out, a free one is chosen"
          : "give all nodes another --master-port");
}

// The first address of the name at which this machine can listen; errno holds
// why there is none.
base::FileDescriptor listen_at_any_of(const std::string& address, int port,
                                      net::PortUse use) {
  errno = EADDRNOTAVAIL;
  for (const net::SocketAddress& candidate :
       net::resolve(address, port).addresses) {
    if (base::FileDescriptor socket = net::listen_at(candidate, use))
      return socket;
  }
  return {};
}

}  // namespace

StoreSocket::StoreSocket(base::FileDescriptor listener)
    : listener_(std::move(listener)),
      port_(net::local_address_of(listener_.get()).port()) {}

StoreSocket StoreSocket::any(const std::string& address) {
  base::FileDescriptor listener =
      listen_at_any_of(address, 0, net::PortUse::kExclusive);
  if (!listener) {
    throw IoError(fmt::format("cannot listen at a free port of {}: {}", address,
                              base::errno_text()));
  }
  return StoreSocket(std::move(listener));
}

StoreSocket StoreSocket::at(const std::string& address, int port,
                            TakenPort advice) {
  base::FileDescriptor listener =
      listen_at_any_of(address, port, net::PortUse::kReuse);
  if (!listener && errno == EACCES) {
    throw ConfigError(fmt::format(
        "port {} needs special rights; leave --master-port out", port));
  }
  if (!listener && errno == EADDRINUSE) {
    throw ConfigError(taken_text(port, advice));
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
