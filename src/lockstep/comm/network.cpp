#include "lockstep/comm/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, int port, int socket_type) {
  addrinfo hints{};
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw ConfigError(fmt::format(
        "cannot resolve MASTER_ADDR='{}': {}; use an address such as 127.0.0.1 "
        "or a name that every host resolves",
        host, gai_strerror(error)));
  }
  return {found, freeaddrinfo};
}

// Connecting a datagram socket sends nothing; it only picks the route.
bool local_end(const addrinfo& target, std::string& text) {
  const FileDescriptor socket(
      ::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  if (connect(socket.get(), target.ai_addr, target.ai_addrlen) != 0) {
    return false;
  }
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  auto* address = reinterpret_cast<sockaddr*>(&own);
  if (getsockname(socket.get(), address, &length) != 0) return false;
  std::array<char, NI_MAXHOST> name{};
  if (getnameinfo(address, length, name.data(), name.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return false;
  }
  text = name.data();
  return true;
}

bool accepts(const addrinfo* targets) {
  for (const addrinfo* at = targets; at != nullptr; at = at->ai_next) {
    const FileDescriptor socket(
        ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket && connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string local_address_towards(const std::string& host, int port) {
  const AddressList targets = resolve(host, port, SOCK_DGRAM);
  std::string text;
  for (const addrinfo* at = targets.get(); at != nullptr; at = at->ai_next) {
    if (local_end(*at, text)) return text;
  }
  throw ConfigError(fmt::format(
      "no route from this host to MASTER_ADDR='{}'; check the network or set "
      "MASTER_ADDR to an address this host reaches",
      host));
}

bool wait_until_reachable(const std::string& host, int port,
                          std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kFirstPause{2};
  constexpr std::chrono::milliseconds kLongestPause{100};
  const AddressList targets = resolve(host, port, SOCK_STREAM);
  const auto deadline = Clock::now() + timeout;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (accepts(targets.get())) return true;
    if (Clock::now() + pause > deadline) return false;
    std::this_thread::sleep_for(pause);
  }
}

void require_interfaces(const std::string& names, const std::string& variable) {
  std::vector<std::string> known;
  const std::unique_ptr<struct if_nameindex[], decltype(&if_freenameindex)>
      interfaces(if_nameindex(), if_freenameindex);
  for (size_t i = 0; interfaces && interfaces[i].if_index != 0; ++i) {
    known.emplace_back(interfaces[i].if_name);
  }
  for (const std::string& name : split(names, ',')) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ConfigError(fmt::format(
        "{}='{}': this host has no network interface '{}'; it has: {}. Set "
        "the variable to one of these or unset it",
        variable, names, name, join(known, ", ")));
  }
}

}  // namespace lockstep
