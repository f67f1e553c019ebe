#include "lockstep/net/address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::net {
namespace {

// Ranks of a large job come at once.
constexpr int kBacklog = 1024;

Resolution look_up(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return {.addresses = {}, .error = gai_strerror(code)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 freeaddrinfo);
  Resolution result;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    SocketAddress& address = result.addresses.emplace_back();
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
  }
  return result;
}

// IPv4 through a socket of IPv6 has addresses such as ::ffff:10.0.0.1.
SocketAddress without_mapping(const SocketAddress& address) {
  constexpr size_t kFirstByte = 12;  // of the IPv4 address
  if (address.family() != AF_INET6) return address;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address.storage);
  if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return address;
  SocketAddress result;
  auto& four = reinterpret_cast<sockaddr_in&>(result.storage);
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  std::memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[kFirstByte],
              sizeof(four.sin_addr));
  result.size = sizeof(four);
  return result;
}

template <typename Get>
SocketAddress end_of(int socket, Get get) {
  SocketAddress result;
  result.size = sizeof(result.storage);
  if (get(socket, reinterpret_cast<sockaddr*>(&result.storage), &result.size) !=
      0) {
    result.size = 0;
  }
  return result;
}

}  // namespace

int SocketAddress::port() const {
  if (family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

bool SocketAddress::is_loopback() const {
  constexpr uint32_t kLoopbackNet = 127;
  const SocketAddress plain = without_mapping(*this);
  if (plain.family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(
        &reinterpret_cast<const sockaddr_in6&>(plain.storage).sin6_addr);
  }
  const auto& address = reinterpret_cast<const sockaddr_in&>(plain.storage);
  return ntohl(address.sin_addr.s_addr) >> 24 == kLoopbackNet;
}

bool SocketAddress::is_any() const {
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_UNSPECIFIED(
        &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
  }
  return family() == AF_INET &&
         reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr ==
             INADDR_ANY;
}

std::string SocketAddress::text() const {
  const SocketAddress plain = without_mapping(*this);
  std::array<char, NI_MAXHOST> name{};
  if (getnameinfo(plain.get(), plain.size, name.data(), name.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return name.data();
}

Resolution resolve(const std::string& host, int port) {
  Resolution result = look_up(host, port, AI_NUMERICHOST);
  if (result.addresses.empty()) result = look_up(host, port, 0);
  return result;
}

std::vector<SocketAddress> resolve_master(const std::string& host, int port) {
  Resolution found = resolve(host, port);
  if (found.addresses.empty()) {
    throw ConfigError(fmt::format(
        "cannot resolve MASTER_ADDR='{}': {}; use an address such as 127.0.0.1 "
        "or a name that every host resolves",
        host, found.error));
  }
  return std::move(found.addresses);
}

SocketAddress any_address(int port) {
  const base::FileDescriptor probe(
      socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return look_up(probe ? "::" : "0.0.0.0", port, AI_NUMERICHOST)
      .addresses.front();
}

bool is_loopback_host(const std::string& host) {
  if (host == "localhost") return true;
  const auto found = look_up(host, 0, AI_NUMERICHOST).addresses;
  return !found.empty() && found[0].is_loopback();
}

std::vector<SocketAddress> addresses_for_others(const std::string& host,
                                                int port) {
  std::vector<SocketAddress> addresses = resolve(host, port).addresses;
  if (addresses.empty() || is_loopback_host(host)) return addresses;
  std::erase_if(addresses, [](const auto& a) { return a.is_loopback(); });
  if (addresses.empty()) addresses.push_back(any_address(port));
  return addresses;
}

base::FileDescriptor listen_at(const SocketAddress& address, PortUse use) {
  base::FileDescriptor result(
      socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result) return {};
  const int on = 1;
  const int off = 0;
  if (use == PortUse::kReuse) {
    setsockopt(result.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (address.family() == AF_INET6) {
    setsockopt(result.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(result.get(), address.get(), address.size) != 0 ||
      listen(result.get(), kBacklog) != 0) {
    const int reason = errno;
    result.reset();
    errno = reason;
  }
  return result;
}

SocketAddress local_address_of(int socket) {
  return end_of(socket, getsockname);
}

SocketAddress peer_address_of(int socket) {
  return end_of(socket, getpeername);
}

}  // namespace lockstep::net
