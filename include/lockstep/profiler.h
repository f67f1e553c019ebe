// Profiler: what a few steps of a training spend their time on.
//
//   lockstep::Profiler profiler(world, {.num_steps = 5});
//   for (const auto& batch : loader.epoch(0)) {
//     ...
//     profiler.step();
//   }
//   if (world.is_main()) std::puts(profiler.table().c_str());
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/export.h"
#include "lockstep/world.h"

namespace lockstep {

struct ProfilerConfig {
  int64_t num_steps = 5;      // To record.
  int64_t warmup_steps = 10;  // Before them.
  // For rank0.json, ..., trace.json with all ranks, and summary.json.
  std::filesystem::path folder = "profile";
};

// Records operations of the thread that makes it and of autograd's threads, and
// kernels of a GPU, also those of replayed CUDA graphs. Chrome's trace format:
// open the files at ui.perfetto.dev, or in chrome://tracing. All ranks have one
// clock, that of the machine. Not thread-safe; one at a time.
class LOCKSTEP_EXPORT Profiler {
 public:
  // Throws ConfigError when a number of steps is not positive.
  explicit Profiler(const World& world, ProfilerConfig config = {});
  ~Profiler();  // Drops a recording that has not ended.
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Call it after every step, on all ranks. The first and last recorded step
  // wait for the device; the latter writes the files, a collective. Throws
  // IoError.
  void step();
  // Ends a recording early; does nothing otherwise. A collective.
  void finish();

  bool is_done() const;
  // By kind of work, with the cost of recording; empty on ranks other than 0
  // and until it is done.
  const std::string& table() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
