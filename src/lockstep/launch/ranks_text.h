// Some of a job's ranks in words.
#pragma once

#include <span>
#include <string>

namespace lockstep::launch {

// "all 8 ranks", "ranks 0, 2-3", "rank 1". The numbers ascend.
std::string ranks_text(std::span<const int> ranks, int num_ranks);

}  // namespace lockstep::launch
