#include "lockstep/doctor/network_checks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/listeners.h"
#include "lockstep/net/address.h"

namespace lockstep::doctor {
namespace {

constexpr double kSlowSeconds = 2;  // For a look-up of a name.

std::string address_text(const sockaddr* address) {
  std::array<char, NI_MAXHOST> text{};
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in)
                                                       : sizeof(sockaddr_in6);
  if (getnameinfo(address, size, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return text.data();
}

std::string names_of(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  for (const Interface& interface : interfaces) {
    if (std::ranges::find(names, interface.name) == names.end()) {
      names.push_back(interface.name);
    }
  }
  return base::join(names, ", ");
}

// NCCL takes lists of beginnings, "=eth0" and "^docker"; Gloo one name.
std::string plain_name(std::string_view setting) {
  std::string_view first = setting.substr(0, setting.find(','));
  if (first.starts_with('=')) first.remove_prefix(1);
  return std::string(first.substr(0, first.find(':')));
}

const Interface* find_named(const std::vector<Interface>& interfaces,
                            const std::string& name) {
  const auto found =
      std::ranges::find_if(interfaces, [&](const Interface& interface) {
        return interface.name.starts_with(name);
      });
  return found == interfaces.end() ? nullptr : &*found;
}

Finding check_name(const std::string& check, const std::string& name,
                   const std::string& mend, Level level) {
  Finding finding{.check = check};
  const int64_t begin = base::monotonic_ns();
  const net::Resolution found = net::resolve(name, 0);
  const double seconds = base::seconds_between(begin, base::monotonic_ns());
  if (found.addresses.empty()) {
    finding.level = level;
    finding.text = fmt::format("'{}' does not resolve ({})", name, found.error);
    finding.mend = mend;
    return finding;
  }
  finding.text = fmt::format("'{}' is {}", name,
                             address_text(found.addresses.front().get()));
  if (seconds > kSlowSeconds) {
    finding.level = Level::kWarning;
    finding.text += fmt::format(", after {}: a name server does not answer",
                                base::duration_text(seconds));
    finding.mend = mend;
  }
  return finding;
}

}  // namespace

std::vector<Interface> read_interfaces() {
  ifaddrs* list = nullptr;
  std::vector<Interface> interfaces;
  if (getifaddrs(&list) != 0) return interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    interfaces.push_back(
        {.name = entry->ifa_name,
         .address = address_text(entry->ifa_addr),
         .is_up = (entry->ifa_flags & IFF_UP) != 0,
         .is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(list);
  return interfaces;
}

Finding check_interface(const std::vector<Interface>& interfaces,
                        const base::Environment& environment,
                        const std::string& master_addr) {
  Finding finding{.check = "interface"};
  for (const char* variable : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    const auto setting = base::find(environment, variable);
    if (!setting || setting->starts_with('^')) continue;
    const std::string name = plain_name(*setting);
    const Interface* found = find_named(interfaces, name);
    if (found != nullptr && found->is_up) {
      finding.text +=
          fmt::format("{}{}={} ({})", finding.text.empty() ? "" : ", ",
                      variable, *setting, found->address);
      continue;
    }
    finding.level = Level::kFailure;
    finding.text =
        fmt::format("{}={}: {}; this machine has: {}", variable, *setting,
                    found == nullptr ? "no such network interface"
                                     : "the interface is down",
                    names_of(interfaces));
    finding.mend = fmt::format("unset {}", variable);
    return finding;
  }
  if (!finding.text.empty()) return finding;
  for (const Interface& interface : interfaces) {
    if (interface.address != master_addr) continue;
    finding.text =
        fmt::format("ranks meet at {} on {}", master_addr, interface.name);
    return finding;
  }
  finding.text = fmt::format("ranks meet at {}; this machine has: {}",
                             master_addr, names_of(interfaces));
  return finding;
}

std::vector<Finding> check_host_names(const std::string& host_name,
                                      const std::string& master_addr) {
  // One machine needs no name: programs of Lockstep look none up.
  std::vector<Finding> findings = {
      check_name("host name", host_name,
                 fmt::format("echo '127.0.1.1 {}' >> /etc/hosts", host_name),
                 Level::kWarning)};
  if (!master_addr.empty()) {
    findings.push_back(check_name("master address", master_addr,
                                  "leave --master-addr out and unset "
                                  "MASTER_ADDR, or correct it",
                                  Level::kFailure));
  }
  return findings;
}

Finding check_port(const std::string& master_addr, std::optional<int> port) {
  Finding finding{.check = "port"};
  if (!port || *port == 0) {
    finding.text = "a free port is chosen";
    return finding;
  }
  const net::Resolution found = net::resolve(master_addr, *port);
  for (const net::SocketAddress& address : found.addresses) {
    if (net::listen_at(address, net::PortUse::kReuse)) {
      finding.text = fmt::format("port {} is free", *port);
      return finding;
    }
    finding.level = Level::kFailure;
    finding.mend =
        "leave --master-port out and unset MASTER_PORT, a free one "
        "is chosen";
    if (errno == EADDRINUSE) {
      const auto holder = launch::find_port_holder(*port);
      finding.text = fmt::format(
          "port {} is taken{}", *port,
          holder
              ? fmt::format(" by process {} ({})", holder->pid, holder->command)
              : " by another process or job");
      return finding;
    }
    finding.text = fmt::format("port {} of {}: {}", *port, master_addr,
                               base::errno_text());
  }
  if (finding.text.empty()) finding.text = "not checked: the address is wrong";
  return finding;
}

}  // namespace lockstep::doctor
