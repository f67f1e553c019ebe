#include "lockstep/launch/port.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/launch/listeners.h"

namespace lockstep {
namespace {

enum class Sharing { kExclusive, kReuse };

void allow_reuse(int socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

int bind_family(int socket, int family, int port) {
  if (family == AF_INET6) {
    const int off = 0;
    setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    return bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address));
}

// A dual-stack socket where the machine has IPv6, else an IPv4 one. No socket
// when the port is taken; errno says why.
FileDescriptor bind_wildcard(int port, Sharing sharing) {
  for (const int family : {AF_INET6, AF_INET}) {
    FileDescriptor holder(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!holder) continue;
    if (sharing == Sharing::kReuse) allow_reuse(holder.get());
    if (bind_family(holder.get(), family, port) == 0) return holder;
    if (errno == EADDRINUSE || errno == EACCES) return {};
  }
  return {};
}

int bound_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string taken_text(int port) {
  const auto holder = find_port_holder(port);
  return fmt::format(
      "port {} (master port) is taken{}; leave --master-port and MASTER_PORT "
      "out, a free one is chosen",
      port,
      holder ? fmt::format(" by process {} ({})", holder->pid, holder->command)
             : " by another process or job");
}

}  // namespace

PortReservation::PortReservation(FileDescriptor socket, int port)
    : socket_(std::move(socket)), port_(port) {
  // Also for a socket bound without it: from here on the workers may listen.
  allow_reuse(socket_.get());
}

PortReservation PortReservation::any() {
  FileDescriptor holder = bind_wildcard(0, Sharing::kExclusive);
  if (!holder) throw IoError("cannot reserve a free port: " + errno_text());
  const int port = bound_port(holder.get());
  return {std::move(holder), port};
}

PortReservation PortReservation::at(int port) {
  FileDescriptor holder = bind_wildcard(port, Sharing::kExclusive);
  if (!holder && errno == EACCES) {
    throw ConfigError(fmt::format(
        "port {} needs special rights; leave --master-port out", port));
  }
  // Old connections of a finished job block an exclusive bind for a minute;
  // they show in the kernel's table, another launcher's reservation does not.
  if (!holder && is_port_closing(port)) {
    holder = bind_wildcard(port, Sharing::kReuse);
  }
  if (!holder) throw ConfigError(taken_text(port));
  return {std::move(holder), port};
}

void check_local_address(const std::string& address) {
  if (address == "127.0.0.1" || address == "localhost") return;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(address.c_str(), nullptr, &hints, &list);
  if (code != 0) {
    throw ConfigError(fmt::format(
        "master address '{}' cannot be resolved ({}); leave --master-addr and "
        "MASTER_ADDR out",
        address, gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list,
                                                             freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const FileDescriptor probe(
        socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (probe && bind(probe.get(), entry->ai_addr, entry->ai_addrlen) == 0) {
      return;
    }
  }
  throw ConfigError(fmt::format(
      "master address '{}' is not an address of this machine, and several "
      "nodes are not supported yet; leave --master-addr and MASTER_ADDR out",
      address));
}

}  // namespace lockstep
