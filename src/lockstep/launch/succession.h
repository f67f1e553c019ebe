// Who hosts an elastic job when its host is lost: the node with the lowest
// number that is left.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/launch/rendezvous_settings.h"
#include "lockstep/nodes/messages.h"
#include "lockstep/nodes/rounds.h"

namespace lockstep::launch {

// Not thread-safe. Knows the last world, and the hosts that were lost since.
class Succession {
 public:
  // A world has formed.
  void begin(const nodes::World& world);
  bool is_possible() const { return world_.has_value(); }

  void lose_host() { departed_.insert(host_); }
  // It is lost to this node, but may live.
  void lose_sight_of_host() { silent_.insert(host_); }
  // The host leaves, and these nodes have ended with it.
  void depart(std::span<const int> nodes) {
    departed_.insert(nodes.begin(), nodes.end());
  }

  struct Candidate {
    int node = 0;
    std::string address = {};
    bool is_this_node = false;
  };
  // Those that may host, the first choice first.
  std::vector<Candidate> candidates() const;
  void choose(const Candidate& candidate) { host_ = candidate.node; }

  // The rest has a value after the loss of a host only.
  std::optional<nodes::FormerPlace> former_place() const;
  std::optional<nodes::LostWorld> lost_world(
      const RendezvousSettings& settings) const;

 private:
  std::optional<nodes::World> world_;
  int host_ = 0;  // its number in that world
  std::set<int> departed_;
  std::set<int> silent_;
};

// After this time without a sign of life a launcher is lost.
double silence_seconds(const RendezvousSettings& settings);

// Until the processes of a silent node have ended, from the moment when this
// node noticed that silence: the other one may notice it later.
double settle_seconds(const RendezvousSettings& settings);

// The machine says that nobody listens there. Otherwise someone does, or it
// does not answer. Waits for seconds at most.
bool is_port_closed(const std::string& host, int port);

}  // namespace lockstep::launch
