// What the doctor makes of a measured recipe: its data, batch, memory and
// speed. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/doctor/finding.h"

namespace lockstep::doctor {

// The result of `lockstep-worker probe recipe`; rank 0's.
struct RecipeMeasurement {
  int64_t num_samples = 0;
  double first_ms = 0;  // To decode the first sample.
  double last_ms = 0;
  std::string batch = {};  // "effective batch 64 = ..."
  std::string lr = {};
  int64_t batch_size = 0;  // Per process.
  int64_t workers = 0;     // Loader threads per process.
  std::string device = {};
  int64_t peak_bytes = 0;  // On the device.
  int64_t total_bytes = 0;
  int64_t peak_host_bytes = 0;
  int64_t checkpoint_bytes = 0;
  int64_t num_checkpoints = 1;  // That are kept.
  std::string save_dir = {};
  double step_ms = 0;
  double samples_per_second = 0;  // Over all processes.
  double data_part = 0;           // Fraction of a step's time.
  double exchange_part = 0;
};

// No value when the text is not the JSON of a measurement.
std::optional<RecipeMeasurement> parse_measurement(std::string_view json);

Finding data_finding(const RecipeMeasurement& measured);
Finding batch_finding(const RecipeMeasurement& measured);
// A warning where a step takes more than nine tenths of the device.
Finding batch_memory_finding(const RecipeMeasurement& measured);

// What was measured by turns on one and on all processes.
struct SpeedPair {
  RecipeMeasurement alone = {};
  RecipeMeasurement together = {};
  int num_processes = 1;
  // Processes that want a CPU besides, by the load average; and CPUs.
  double load = 0;
  double cpus = 1;
};
// A warning with its cause where processes together gain little, or where the
// machine is too busy for a prediction.
Finding speed_finding(const SpeedPair& pair);

}  // namespace lockstep::doctor
