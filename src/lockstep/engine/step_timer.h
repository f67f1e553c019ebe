// Where the time of training goes: data, forward, backward, exchange,
// optimizer.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "lockstep/base/status.h"
#include "lockstep/track/time_table.h"

namespace lockstep::engine {

// On a CPU every step is timed by the clock. On a GPU the clock shows when work
// was queued and not when it ran: there events time the last step before a
// take(), which stands for all since the one before.
class StepTimer {
 public:
  StepTimer(c10::Device device, const base::StatusWriter& status);
  ~StepTimer();

  // Around a step, in this order; the middle three once per micro-batch.
  void begin_step();
  void data_end();
  void forward_end();
  void backward_end();
  void end_step();

  // What was measured since the last call. Waits for the device.
  track::StepTimes take();

 private:
  class DeviceMarks;
  double lap();

  base::StatusWriter status_;
  std::unique_ptr<DeviceMarks> device_;  // Null on a CPU.
  track::StepTimes times_;
  int64_t last_ns_ = 0;  // The end of the part before; 0 at the start.
};

}  // namespace lockstep::engine
