// Which user of this machine is at the other end of a connection.
#pragma once

#include <sys/types.h>

#include <optional>

#include "lockstep/base/files.h"

namespace lockstep::net {

// Asks the kernel (sock_diag, else /proc/net/tcp and tcp6). Not thread-safe.
class SocketOwners {
 public:
  SocketOwners();

  // The user whose open socket is the other end of this TCP connection. No
  // value when that end is on another machine, or closed: then nobody can be
  // named.
  std::optional<uid_t> owner_of_peer(int socket) const;

 private:
  base::FileDescriptor netlink_;
};

}  // namespace lockstep::net
