// Ranks that are persistently slower than the others, which wait for them in
// the exchange of gradients: named with what takes them long.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/training_status.h"

namespace lockstep::launch {

// A rank of a training, as its status page shows it.
struct RankPace {
  int rank = 0;
  int64_t num_steps = 0;         // completed
  base::StepSeconds times = {};  // of its last steps
};

// One per attempt. A rank is slow when its loading or computing makes the step
// at least 20 % and 5 ms longer, and the others spend that time waiting.
class StragglerWatch {
 public:
  // Lines for the user: once when a rank has been slow for 20 steps and 30 s,
  // once when it has been in time for 20 steps. On crowded CPUs the system
  // prefers now one rank and now another, each for seconds.
  std::vector<std::string> look(std::span<const RankPace> ranks,
                                int64_t now_ns);

 private:
  struct Record {
    base::StepSeconds times = {};  // at the last look
    int64_t since_step = -1;       // the other state began; -1: it did not
    int64_t since_ns = 0;
    int num_looks = 0;  // that confirm it
    bool is_slow = false;
  };

  std::map<int, Record> records_;  // by rank
};

}  // namespace lockstep::launch
