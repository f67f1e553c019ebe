// An order in which samples of similar length follow each other.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

struct LengthOrderConfig {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// Samples of one batch are padded to the longest: so that little is wasted,
// `order`, a random one, becomes runs of 64 samples of similar length, in
// random order; what does not fill a run comes last. It does not depend on the
// size of a batch, so a run may go on with another one.
std::vector<int64_t> order_by_length(std::vector<int64_t> order,
                                     const std::vector<int64_t>& lengths,
                                     const LengthOrderConfig& config);

}  // namespace lockstep::data
