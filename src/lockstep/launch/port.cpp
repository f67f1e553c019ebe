#include "lockstep/launch/port.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/launch/listeners.h"
#include "lockstep/net/address.h"

namespace lockstep {
namespace {

std::string taken_text(int port) {
  const auto holder = find_port_holder(port);
  return fmt::format(
      "port {} (master port) is taken{}; leave --master-port and MASTER_PORT "
      "out, a free one is chosen",
      port,
      holder ? fmt::format(" by process {} ({})", holder->pid, holder->command)
             : " by another process or job");
}

// The first address of the name at which this machine can listen; errno holds
// why there is none.
FileDescriptor listen_at_any_of(const std::string& address, int port,
                                PortUse use) {
  errno = EADDRNOTAVAIL;
  for (const SocketAddress& candidate : resolve(address, port).addresses) {
    if (FileDescriptor socket = listen_at(candidate, use)) return socket;
  }
  return {};
}

}  // namespace

StoreSocket::StoreSocket(FileDescriptor listener)
    : listener_(std::move(listener)),
      port_(local_address_of(listener_.get()).port()) {}

StoreSocket StoreSocket::any(const std::string& address) {
  FileDescriptor listener = listen_at_any_of(address, 0, PortUse::kExclusive);
  if (!listener) {
    throw IoError(fmt::format("cannot listen at a free port of {}: {}", address,
                              errno_text()));
  }
  return StoreSocket(std::move(listener));
}

StoreSocket StoreSocket::at(const std::string& address, int port) {
  FileDescriptor listener = listen_at_any_of(address, port, PortUse::kReuse);
  if (!listener && errno == EACCES) {
    throw ConfigError(fmt::format(
        "port {} needs special rights; leave --master-port out", port));
  }
  if (!listener && errno == EADDRINUSE) throw ConfigError(taken_text(port));
  if (!listener) {
    throw IoError(
        fmt::format("cannot listen at {}:{}: {}", address, port, errno_text()));
  }
  return StoreSocket(std::move(listener));
}

void check_local_address(const std::string& address) {
  const Resolution found = resolve(address, 0);
  if (found.addresses.empty()) {
    throw ConfigError(fmt::format(
        "master address '{}' cannot be resolved ({}); leave --master-addr and "
        "MASTER_ADDR out",
        address, found.error));
  }
  for (const SocketAddress& candidate : found.addresses) {
    if (listen_at(candidate, PortUse::kExclusive)) return;
  }
  throw ConfigError(fmt::format(
      "master address '{}' is not an address of this machine, and several "
      "nodes are not supported yet; leave --master-addr and MASTER_ADDR out",
      address));
}

}  // namespace lockstep
