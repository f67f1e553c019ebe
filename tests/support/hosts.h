// Hosts made of network namespaces, with a switch between them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/process.h"

namespace lockstep::testing {

// Needs no rights where the system lets users make user namespaces. Host i is
// named "host<i>" and has one interface, eth0. Functions throw IoError, with
// what is missing, when the system has no such namespaces.
class Hosts {
 public:
  enum class Family { kIpv4, kIpv6 };

  explicit Hosts(int count, Family family = Family::kIpv4);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  std::string address(int host) const;
  // The command that runs `command` on the host.
  std::vector<std::string> on(int host,
                              const std::vector<std::string>& command) const;

  // The cable of the host, both ways.
  void cut(int host);
  void mend(int host);
  // What the host sends to the others is lost; what they send arrives.
  void cut_outgoing(int host);
  // What the others send to the host is lost; what it sends arrives.
  void cut_incoming(int host);

 private:
  std::vector<std::string> enter(const Process& holder,
                                 const std::vector<std::string>& command) const;
  void run_in(const Process& holder, const std::string& script) const;
  void block_route(int from, int to) const;

  Family family_;
  std::unique_ptr<Process> switch_;
  std::vector<std::unique_ptr<Process>> hosts_;
};

}  // namespace lockstep::testing
