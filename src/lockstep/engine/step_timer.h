// Where the time of training goes: data, forward, backward, exchange,
// optimizer.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "lockstep/base/status.h"
#include "lockstep/track/time_table.h"

namespace lockstep::engine {

// On a CPU the clock times every step. On a GPU the clock shows when work was
// queued, not when it ran: there CUDA events time the last step before a
// take(), and its times are scaled to all steps since the previous take().
class StepTimer {
 public:
  StepTimer(c10::Device device, const base::StatusWriter& status);
  ~StepTimer();

  // Called around a step, in this order; the middle three once per micro-batch.
  void begin_step();
  void data_end();
  void forward_end();
  void backward_end();
  void end_step();

  // Times since the last call. Waits for the device.
  track::StepTimes take();

 private:
  class DeviceMarks;
  double lap();

  base::StatusWriter status_;
  std::unique_ptr<DeviceMarks> device_;  // Null on a CPU.
  track::StepTimes times_;
  int64_t last_ns_ = 0;  // End of the previous part; 0 at the start.
};

}  // namespace lockstep::engine
