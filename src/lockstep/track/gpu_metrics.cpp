#include "lockstep/track/gpu_metrics.h"

#include <fmt/format.h>

#include <array>

#include "lockstep/base/signal_mask.h"

namespace lockstep::track {
namespace {

constexpr double kMilliwattsPerWatt = 1000;
// Numbers of NVML's enumerations.
constexpr int kTemperatureOfGpu = 0;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;

// The layout of nvmlUtilization_t.
struct Utilization {
  unsigned gpu;
  unsigned memory;
};

// The layout of nvmlMemory_t.
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

std::optional<Memory> memory_of(const base::Nvml& nvml,
                                base::Nvml::Device device) {
  Memory memory{};
  if (!nvml.call("nvmlDeviceGetMemoryInfo", device, &memory)) {
    return std::nullopt;
  }
  return memory;
}

// What a function gives that fills in one number.
template <typename... Arguments>
std::optional<double> nvml_number(const base::Nvml& nvml, const char* function,
                                  Arguments... arguments) {
  unsigned value = 0;
  if (!nvml.call(function, arguments..., &value)) return std::nullopt;
  return value;
}

std::optional<double> watts(std::optional<double> milliwatts) {
  if (!milliwatts) return std::nullopt;
  return *milliwatts / kMilliwattsPerWatt;
}

std::optional<double> percent_of(std::optional<double> part,
                                 std::optional<double> whole) {
  if (!part || !whole || *whole <= 0) return std::nullopt;
  return 100 * *part / *whole;
}

GpuReading read_gpu(const base::Nvml& nvml, base::Nvml::Device device) {
  GpuReading reading;
  Utilization utilization{};
  if (nvml.call("nvmlDeviceGetUtilizationRates", device, &utilization)) {
    reading.busy_percent = utilization.gpu;
    reading.memory_busy_percent = utilization.memory;
  }
  if (const auto memory = memory_of(nvml, device)) {
    reading.memory_used_bytes = static_cast<double>(memory->used);
    reading.memory_total_bytes = static_cast<double>(memory->total);
  }
  reading.temperature_celsius =
      nvml_number(nvml, "nvmlDeviceGetTemperature", device, kTemperatureOfGpu);
  reading.power_watts =
      watts(nvml_number(nvml, "nvmlDeviceGetPowerUsage", device));
  reading.power_limit_watts =
      watts(nvml_number(nvml, "nvmlDeviceGetEnforcedPowerLimit", device));
  reading.sm_clock_mhz =
      nvml_number(nvml, "nvmlDeviceGetClockInfo", device, kSmClock);
  reading.memory_clock_mhz =
      nvml_number(nvml, "nvmlDeviceGetClockInfo", device, kMemoryClock);
  return reading;
}

}  // namespace

std::vector<std::pair<std::string, double>> gpu_metrics(
    unsigned index, const GpuReading& reading) {
  const std::pair<const char*, std::optional<double>> all[] = {
      {"gpu", reading.busy_percent},
      {"memory", reading.memory_busy_percent},
      {"memoryAllocated",
       percent_of(reading.memory_used_bytes, reading.memory_total_bytes)},
      {"memoryAllocatedBytes", reading.memory_used_bytes},
      {"temp", reading.temperature_celsius},
      {"powerWatts", reading.power_watts},
      {"enforcedPowerLimitWatts", reading.power_limit_watts},
      {"powerPercent",
       percent_of(reading.power_watts, reading.power_limit_watts)},
      {"smClock", reading.sm_clock_mhz},
      {"memoryClock", reading.memory_clock_mhz}};
  std::vector<std::pair<std::string, double>> metrics;
  for (const auto& [name, value] : all) {
    if (value)
      metrics.emplace_back(fmt::format("gpu.{}.{}", index, name), *value);
  }
  return metrics;
}

Gpus::Gpus() {
  if (!base::has_nvidia_driver()) return;
  nvml_.emplace();
  const unsigned number = nvml_->is_ready() ? nvml_->count().value_or(0) : 0;
  for (unsigned i = 0; i < number; ++i) {
    if (const auto device = nvml_->device(i)) devices_.push_back(*device);
  }
}

std::vector<GpuModel> Gpus::models() const {
  std::vector<GpuModel> models;
  for (const auto device : devices_) {
    std::array<char, 96> name{};
    const auto room = static_cast<unsigned>(name.size());
    GpuModel model;
    if (nvml_->call("nvmlDeviceGetName", device, name.data(), room)) {
      model.name = name.data();
    }
    if (const auto memory = memory_of(*nvml_, device)) {
      model.memory_bytes = memory->total;
    }
    models.push_back(std::move(model));
  }
  return models;
}

std::vector<std::pair<std::string, double>> Gpus::metrics() const {
  const base::AllSignalsBlocked for_threads_of_nvml;
  std::vector<std::pair<std::string, double>> all;
  for (unsigned i = 0; i < devices_.size(); ++i) {
    const auto one = gpu_metrics(i, read_gpu(*nvml_, devices_[i]));
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace lockstep::track
