// Memory of this process as the kernel counts it.
#pragma once

#include <cstdint>

namespace lockstep::base {

struct ProcessMemory {
  int64_t mapped_bytes = 0;    // Addresses in use; what ulimit -v limits.
  int64_t resident_bytes = 0;  // In the machine's memory.
};

// Zeros where /proc cannot be read.
ProcessMemory process_memory();

}  // namespace lockstep::base
