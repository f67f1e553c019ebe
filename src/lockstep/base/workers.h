// A parallel loop over items.
#pragma once

#include <cstdint>
#include <functional>

namespace lockstep::base {

// Progress of a long loop; called by one thread at a time.
using ShowProgress = std::function<void(int64_t done, int64_t total)>;

// Calls work(0) ... work(num_items - 1), each once, on `num_threads` threads
// (0: one per core of this process, at most 16). Blocks until all are done. The
// first error ends the loop early and is thrown.
void run_workers(int64_t num_items, int64_t num_threads,
                 const std::function<void(int64_t)>& work,
                 const ShowProgress& progress = {});

// The number of threads that this means.
int64_t num_workers(int64_t num_items, int64_t num_threads);

}  // namespace lockstep::base
