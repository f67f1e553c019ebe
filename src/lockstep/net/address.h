// Socket addresses, and sockets that listen at them.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::net {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  int family() const { return storage.ss_family; }
  int port() const;
  bool is_loopback() const;  // also as ::ffff:127.0.0.1
  bool is_any() const;       // 0.0.0.0 or ::
  // "10.0.0.1", also of ::ffff:10.0.0.1; "fe80::1%eth0". Empty: none.
  std::string text() const;
};

struct Resolution {
  std::vector<SocketAddress> addresses;
  std::string error;  // why there are none
};

// A text that is an address already is never looked up: a name server that does
// not answer delays names only.
Resolution resolve(const std::string& host, int port);

// The same for MASTER_ADDR: throws ConfigError when there are none.
std::vector<SocketAddress> resolve_master(const std::string& host, int port);

// 0.0.0.0, or :: with IPv4 where the machine has IPv6.
SocketAddress any_address(int port);

// "localhost", or an address of the loopback interface. No name is looked up.
bool is_loopback_host(const std::string& host);

// Where a machine may listen that other machines know as `host`: at its
// addresses without those of the loopback interface, which is how Debian's
// installer enters a machine's own name; where no other is left, at every
// interface. A loopback host stays one.
std::vector<SocketAddress> addresses_for_others(const std::string& host,
                                                int port);

// kReuse also takes a port at which connections of a former listener are still
// closing. Nobody who listens there loses it.
enum class PortUse { kExclusive, kReuse };

// A socket that is bound and listens. None on failure; errno is set.
base::FileDescriptor listen_at(const SocketAddress& address, PortUse use);

// The address that the socket is bound to.
SocketAddress local_address_of(int socket);
// The address at the other end; size 0 when there is none.
SocketAddress peer_address_of(int socket);

}  // namespace lockstep::net
