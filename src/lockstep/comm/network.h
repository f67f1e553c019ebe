// Addresses of this host, as far as connecting the ranks needs them.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

// The local address that a connection to `host` leaves from ("127.0.0.1" for
// localhost). Throws ConfigError when the name cannot be resolved or no route
// leads there.
std::string local_address_towards(const std::string& host, int port);

// Throws ConfigError listing the interfaces there are, when one of the
// comma-separated `names` is none of them. `variable` is where the names come
// from.
void require_interfaces(const std::string& names, const std::string& variable);

}  // namespace lockstep::comm
