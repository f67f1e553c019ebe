// Curves as the page gets them: few points, whatever the run's length.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/plot/run_curves.h"
#include "lockstep/plot/series.h"

namespace lockstep::board {

// At most about `most` points. Of those that fall together the lowest and the
// highest stay, so that spikes stay visible. Gaps remain, between lines.
plot::Series::Lines thinned(const plot::Series::Lines& lines, size_t most);

// {"train/loss":{"x":[...],"y":[...],"n":100000}, ...}; null in y is a gap.
// `wanted`: names; none means all.
std::string curves_json(std::span<const plot::NamedSeries> metrics,
                        const std::vector<std::string>& wanted, size_t most);

}  // namespace lockstep::board
