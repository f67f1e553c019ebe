// Where the time of training goes: data, forward, backward, exchange,
// optimizer.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "lockstep/base/status.h"
#include "lockstep/track/time_table.h"

namespace lockstep::engine {

// CUDA events of one step. Those of a step that is captured in a CUDA graph
// are recorded by every replay.
class StepEvents;

// On a CPU the clock times every step. On a GPU the clock shows when work was
// queued, not when it ran: there CUDA events time the last step before a
// take(), and its times are scaled to all steps since the previous take().
class StepTimer {
 public:
  StepTimer(c10::Device device, const base::StatusWriter& status);
  ~StepTimer();

  // Called around a step, in this order. data_end() to backward_end() once per
  // micro-batch; data_end() may be called once for all of them, before.
  void begin_step();
  void data_end();
  void forward_begin();
  void forward_end();
  void backward_end();
  void update_end();
  void end_step();
  // The host has waited for the device, whose times are known from events.
  void wait_end();

  // For a step that is captured: new events; for one that is replayed: those
  // of its graph. Null on a CPU.
  std::shared_ptr<StepEvents> start_events();
  void use_events(std::shared_ptr<StepEvents> events);

  // Times since the last call. Waits for the device.
  track::StepTimes take();

 private:
  double lap();

  base::StatusWriter status_;
  bool is_device_;
  std::shared_ptr<StepEvents> events_;  // Null on a CPU.
  bool is_replayed_ = false;            // This step.
  track::StepTimes times_;
  int64_t last_ns_ = 0;  // End of the previous part; 0 at the start.
};

}  // namespace lockstep::engine
