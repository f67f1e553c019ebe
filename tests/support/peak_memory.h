// How much memory a piece of work takes.
#pragma once

#include <cstdint>
#include <functional>

namespace lockstep::testing {

// Runs `work` in a forked child and returns by how many bytes the child's
// memory grew at most. Also when it throws; -1 when the child died. For
// processes with one thread.
int64_t peak_memory_bytes(const std::function<void()>& work);

}  // namespace lockstep::testing
