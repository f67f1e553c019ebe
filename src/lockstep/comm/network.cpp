#include "lockstep/comm/network.h"

#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"

namespace lockstep::comm {
namespace {

// Connecting a datagram socket sends nothing; it only picks the route.
bool local_end(const net::SocketAddress& target, std::string& text) {
  const base::FileDescriptor socket(
      ::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  if (connect(socket.get(), target.get(), target.size) != 0) return false;
  const net::SocketAddress own = net::local_address_of(socket.get());
  std::array<char, NI_MAXHOST> name{};
  if (getnameinfo(own.get(), own.size, name.data(), name.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return false;
  }
  text = name.data();
  return true;
}

}  // namespace

std::string local_address_towards(const std::string& host, int port) {
  std::string text;
  for (const net::SocketAddress& target : net::resolve_master(host, port)) {
    if (local_end(target, text)) return text;
  }
  throw ConfigError(fmt::format(
      "no route from this host to MASTER_ADDR='{}'; check the network or set "
      "MASTER_ADDR to an address this host reaches",
      host));
}

void require_interfaces(const std::string& names, const std::string& variable) {
  std::vector<std::string> known;
  const std::unique_ptr<struct if_nameindex[], decltype(&if_freenameindex)>
      interfaces(if_nameindex(), if_freenameindex);
  for (size_t i = 0; interfaces && interfaces[i].if_index != 0; ++i) {
    known.emplace_back(interfaces[i].if_name);
  }
  for (const std::string& name : base::split(names, ',')) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ConfigError(fmt::format(
        "{}='{}': this host has no network interface '{}'; it has: {}. Set "
        "the variable to one of these or unset it",
        variable, names, name, base::join(known, ", ")));
  }
}

}  // namespace lockstep::comm
