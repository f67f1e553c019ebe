// How the nodes of a job find each other, as the options say.
#pragma once

#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/launch/options.h"

namespace lockstep::launch {

struct NodesPlan {
  enum class Mode {
    kAlone,   // one node
    kStatic,  // --node-rank: node 0 is at the master address, as in torchrun
    kJoin,    // --rdzv-endpoint: whoever can listen there hosts
  };
  Mode mode = Mode::kAlone;
  int num_nodes = 1;    // at most, in an elastic job
  int min_nodes = 0;    // of an elastic job; 0: the number of nodes is fixed
  int node_rank = 0;    // kStatic
  std::string address;  // where they meet: a name or an address
  int port = 0;
  RendezvousSettings settings;
  std::string secret;  // empty: none

  // Nodes may join, leave and be lost while the job runs.
  bool is_elastic() const { return min_nodes > 0; }
};

// Throws ConfigError for options that contradict each other, and for nodes that
// would meet without a secret where others could join.
NodesPlan plan_nodes(const RunOptions& options,
                     const base::Environment& environment);

struct Endpoint {
  std::string host;
  int port = 0;
};

// "host", "host:1", "10.0.0.1:1", "fd00::1", "[fd00::1]:1". Throws ConfigError.
Endpoint parse_endpoint(const std::string& text, int default_port);

// "box:1", "[fd00::1]:1"
std::string endpoint_text(const std::string& host, int port);

// 0 to 65535. `source` is for the error. Throws ConfigError.
int parse_port(const std::string& text, const std::string& source);

}  // namespace lockstep::launch
