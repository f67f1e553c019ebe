// Writing records beside training: one queue, one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/track/tracker.h"

namespace lockstep::track {

struct RecorderConfig {
  // What may wait in memory for a slow disk; what comes on top is dropped, so
  // that a step never waits.
  size_t max_waiting_bytes = size_t{64} << 20;
  std::chrono::milliseconds tick = std::chrono::seconds(1);
  // Time between two reports about a tracker that keeps failing.
  std::chrono::milliseconds report_interval = std::chrono::minutes(10);
  // Called on the recorder's thread, with a whole sentence. It may call
  // console().
  std::function<void(const std::string&)> on_problem = {};
};

// Passes records to all trackers, in order. A failing one is reported now and
// then, and at the end how much it lost; the others go on. record() and
// console() may be called by any thread and never wait for a file.
class Recorder {
 public:
  Recorder(RecorderConfig config,
           std::vector<std::unique_ptr<Tracker>> trackers);
  ~Recorder();  // Writes what waits, without finish().
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Both set the time.
  void record(Record record);
  void console(ConsoleText text);

  // Waits until all that was recorded before is written.
  void wait();
  // As wait(), no longer than `limit`. False when it is not written by then.
  bool wait_for(std::chrono::milliseconds limit);

  // Waits until everything is written. No calls after it count.
  void finish(int exit_code);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::track
