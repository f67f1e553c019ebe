// What the GPUs of this machine do, by NVIDIA's management library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/nvml.h"

namespace lockstep::track {

struct GpuModel {
  std::string name = {};
  uint64_t memory_bytes = 0;
};

// One GPU's readings; no value where it has none.
struct GpuReading {
  std::optional<double> busy_percent = {};
  std::optional<double> memory_busy_percent = {};
  std::optional<double> memory_used_bytes = {};
  std::optional<double> memory_total_bytes = {};
  std::optional<double> temperature_celsius = {};
  std::optional<double> power_watts = {};
  std::optional<double> power_limit_watts = {};
  std::optional<double> sm_clock_mhz = {};
  std::optional<double> memory_clock_mhz = {};
};

// Under the names that Weights & Biases has panels for: "gpu.0.temp".
std::vector<std::pair<std::string, double>> gpu_metrics(
    unsigned index, const GpuReading& reading);

// The GPUs of this machine, none without a driver. Nothing here throws.
class Gpus {
 public:
  Gpus();

  std::vector<GpuModel> models() const;
  std::vector<std::pair<std::string, double>> metrics() const;

 private:
  std::optional<base::Nvml> nvml_;
  std::vector<base::Nvml::Device> devices_;
};

}  // namespace lockstep::track
