// Addresses and interfaces of this host, as far as connecting the ranks needs
// them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::comm {

// The local address that a connection to `host` leaves from ("127.0.0.1" for
// localhost): the routes decide, so that bridges and virtual interfaces of
// containers are taken only where they lead to `host`. Throws ConfigError when
// the name cannot be resolved or no route leads there.
std::string local_address_towards(const std::string& host, int port);

bool is_loopback_address(const std::string& address);

// The interface that has this address; empty: none.
std::string interface_of_address(const std::string& address);

// What NCCL_SOCKET_IFNAME shall be for a rank at `address`: exactly its
// interface. Empty: leave it alone, because the environment or a file that NCCL
// reads (NCCL_CONF_FILE, ~/.nccl.conf, /etc/nccl.conf) sets it already.
std::string nccl_interface(const std::string& address,
                           const base::Environment& environment);

// Throws ConfigError listing the interfaces there are, when one of the
// comma-separated `names` is none of them. `variable` is where the names come
// from.
void require_interfaces(const std::string& names, const std::string& variable);

}  // namespace lockstep::comm
