// Where the ranks of a job meet: host name, interface, port.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/doctor/finding.h"

namespace lockstep::doctor {

struct Interface {
  std::string name;
  std::string address;  // IPv4 or IPv6 as text.
  bool is_up = false;
  bool is_loopback = false;
};

// Those of this machine that have an address.
std::vector<Interface> read_interfaces();

// By GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME, else the one of the address
// where the ranks meet.
Finding check_interface(const std::vector<Interface>& interfaces,
                        const base::Environment& environment,
                        const std::string& master_addr);

// This machine's own name, and the master address where one is given. A name
// server that does not answer makes it slow.
std::vector<Finding> check_host_names(const std::string& host_name,
                                      const std::string& master_addr);

// No value: a free port is chosen.
Finding check_port(const std::string& master_addr, std::optional<int> port);

}  // namespace lockstep::doctor
