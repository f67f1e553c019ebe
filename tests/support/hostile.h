// Connections that a launcher's port may get from a network: scanners, other
// programs, wrong launchers, those that never say anything, and those that say
// it a byte at a time.
#pragma once

#include <cstdint>

namespace lockstep::testing {

struct HostileCounts {
  int64_t opened = 0;
  int64_t refused = 0;  // could not even connect
};

// One after the other, with up to 300 left open meanwhile, to 127.0.0.1.
HostileCounts connect_as_stranger(int port, int64_t count);

}  // namespace lockstep::testing
