#include "lockstep/launch/gpu_bus.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "lockstep/base/nvml.h"
#include "lockstep/base/signal_mask.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

using Device = base::Nvml::Device;

// The layout of nvmlPciInfo_t.
struct PciInfo {
  std::array<char, 16> legacy_bus_id;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> bus_id;
};

// CUDA takes a shortened identifier, NVML does not.
std::optional<Device> find_by_beginning(const base::Nvml& nvml,
                                        std::string_view beginning) {
  const unsigned number = nvml.count().value_or(0);
  for (unsigned i = 0; i < number; ++i) {
    const auto device = nvml.device(i);
    std::array<char, 96> uuid{};
    const auto room = static_cast<unsigned>(uuid.size());
    if (device && nvml.call("nvmlDeviceGetUUID", *device, uuid.data(), room) &&
        std::string_view(uuid.data()).starts_with(beginning)) {
      return device;
    }
  }
  return std::nullopt;
}

std::optional<Device> find_device(const base::Nvml& nvml,
                                  const std::string& name) {
  if (const auto index = base::parse_integer(name)) {
    return nvml.device(static_cast<unsigned>(*index));
  }
  Device device = nullptr;
  if (!nvml.call("nvmlDeviceGetHandleByUUID", name.c_str(), &device)) {
    return find_by_beginning(nvml, name);
  }
  // A part of a GPU (MIG) lies where the whole does.
  Device whole = nullptr;
  const bool is_part =
      nvml.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device, &whole);
  return is_part ? whole : device;
}

}  // namespace

std::string sysfs_bus_id(unsigned domain, unsigned bus, unsigned device) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", domain, bus, device);
}

std::optional<int> count_by_nvml() {
  const base::AllSignalsBlocked for_its_threads;
  const base::Nvml nvml;
  if (!nvml.is_ready()) return std::nullopt;
  const auto number = nvml.count();
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

bool is_known_gpu(const std::string& uuid) {
  const base::AllSignalsBlocked for_its_threads;
  const base::Nvml nvml;
  return !nvml.is_ready() || find_device(nvml, uuid).has_value();
}

std::vector<std::string> find_bus_ids(std::span<const std::string> names) {
  const base::AllSignalsBlocked for_its_threads;
  const base::Nvml nvml;
  if (!nvml.is_ready()) {
    throw ConfigError(
        "--numa-binding needs NVML to find the GPUs, but libnvidia-ml.so.1 "
        "cannot be used; install it with the driver or leave the option out");
  }
  std::vector<std::string> result;
  for (const std::string& name : names) {
    const auto device = find_device(nvml, name);
    PciInfo info{};
    if (!device || !nvml.call("nvmlDeviceGetPciInfo_v3", *device, &info)) {
      throw ConfigError(fmt::format(
          "--numa-binding: NVML does not know where GPU {} is", name));
    }
    result.push_back(sysfs_bus_id(info.domain, info.bus, info.device));
  }
  return result;
}

}  // namespace lockstep::launch
