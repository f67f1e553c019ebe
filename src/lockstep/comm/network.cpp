#include "lockstep/comm/network.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
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
  text = net::local_address_of(socket.get()).text();
  return !text.empty();
}

using Interfaces = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

Interfaces list_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  return {list, freeifaddrs};
}

net::SocketAddress address_of(const ifaddrs& entry) {
  net::SocketAddress result;
  if (entry.ifa_addr == nullptr) return result;
  if (entry.ifa_addr->sa_family == AF_INET) result.size = sizeof(sockaddr_in);
  if (entry.ifa_addr->sa_family == AF_INET6) result.size = sizeof(sockaddr_in6);
  std::memcpy(&result.storage, entry.ifa_addr, result.size);
  return result;
}

bool is_set_in_file(const std::string& path, std::string_view name) {
  const auto text = base::try_read_file(path);
  if (!text) return false;
  for (const std::string& line : base::split(*text, '\n')) {
    if (base::trim(line.substr(0, line.find('='))) == name &&
        line.find('=') != std::string::npos) {
      return true;
    }
  }
  return false;
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

bool is_loopback_address(const std::string& address) {
  const auto found = net::resolve(address, 0).addresses;
  return !found.empty() && found.front().is_loopback();
}

std::string interface_of_address(const std::string& address) {
  const Interfaces interfaces = list_interfaces();
  for (const ifaddrs* at = interfaces.get(); at != nullptr; at = at->ifa_next) {
    const net::SocketAddress own = address_of(*at);
    if (own.size != 0 && own.text() == address) return at->ifa_name;
  }
  // All of 127.0.0.0/8 is this host, whatever the interface lists.
  if (!is_loopback_address(address)) return "";
  for (const ifaddrs* at = interfaces.get(); at != nullptr; at = at->ifa_next) {
    if ((at->ifa_flags & IFF_LOOPBACK) != 0) return at->ifa_name;
  }
  return "";
}

std::string nccl_interface(const std::string& address,
                           const base::Environment& environment) {
  constexpr const char* kName = "NCCL_SOCKET_IFNAME";
  if (base::find(environment, kName)) return "";
  std::vector<std::string> files = {"/etc/nccl.conf"};
  if (const auto home = base::find(environment, "HOME")) {
    files.push_back(*home + "/.nccl.conf");
  }
  if (const auto file = base::find(environment, "NCCL_CONF_FILE")) {
    files.push_back(*file);
  }
  for (const std::string& file : files) {
    if (is_set_in_file(file, kName)) return "";
  }
  const std::string name = interface_of_address(address);
  // '=': NCCL takes other names for beginnings.
  return name.empty() ? "" : "=" + name;
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
