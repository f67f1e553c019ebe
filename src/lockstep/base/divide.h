// Integer division.
#pragma once

#include <cstdint>

namespace lockstep::base {

// value / by, rounded up. Both are positive, or value is 0.
constexpr int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

}  // namespace lockstep::base
