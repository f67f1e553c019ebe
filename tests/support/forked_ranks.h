// Ranks that share memory, made by fork(): no launcher ends them when one is
// killed, and a hundred groups take seconds.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/shared_collectives.h"

namespace lockstep::testing {

// What a rank is given.
struct ForkedRank {
  int rank = 0;
  int size = 0;
  std::shared_ptr<comm::SharedArena> arena;
  comm::SharedCollectives collectives;
  int64_t timeout_ns = 0;

  // A whole collective.
  void run(const comm::SharedCall& call);
};

struct ForkedRanksConfig {
  int size = 2;
  double timeout_seconds = 60;  // Per collective.
  // Called in the parent once all ranks have met.
  std::function<void(const std::vector<pid_t>&)> disturb =
      [](const std::vector<pid_t>&) {};
};

// How a rank ended.
struct ForkedEnd {
  int signal = 0;      // That killed it; 0: none.
  std::string report;  // What the body returned, or "KindOfError: text".
};

// Runs the body on all ranks and waits for them. A rank that has stopped is
// killed once all others have ended.
std::vector<ForkedEnd> run_forked(
    const ForkedRanksConfig& config,
    const std::function<std::string(ForkedRank&)>& body);

}  // namespace lockstep::testing
