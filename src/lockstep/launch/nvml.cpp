#include "lockstep/launch/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// While it lives, threads that start take no signal. NVML leaves a thread
// behind: it must not take the SIGCHLD that the launcher waits for.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

using Device = void*;

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

// Ending NVML again costs milliseconds; the process is short-lived and the
// library keeps nothing outside of it.
class Nvml {
 public:
  Nvml() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    is_ready_ = library_ != nullptr && call("nvmlInit_v2");
  }

  bool is_ready() const { return is_ready_; }

  // False also where the library is too old to know the function.
  template <typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr && function(arguments...) == 0;
  }

  std::optional<unsigned> count() const {
    unsigned number = 0;
    if (!call("nvmlDeviceGetCount_v2", &number)) return std::nullopt;
    return number;
  }

 private:
  const AllSignalsBlocked for_its_threads_;
  void* library_ = nullptr;
  bool is_ready_ = false;
};

std::optional<Device> find_by_index(const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  if (!nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &device)) {
    return std::nullopt;
  }
  return device;
}

// CUDA takes a shortened identifier, NVML does not.
std::optional<Device> find_by_beginning(const Nvml& nvml,
                                        std::string_view beginning) {
  const unsigned number = nvml.count().value_or(0);
  for (unsigned i = 0; i < number; ++i) {
    const auto device = find_by_index(nvml, i);
    std::array<char, 96> uuid{};
    const auto room = static_cast<unsigned>(uuid.size());
    if (device && nvml.call("nvmlDeviceGetUUID", *device, uuid.data(), room) &&
        std::string_view(uuid.data()).starts_with(beginning)) {
      return device;
    }
  }
  return std::nullopt;
}

std::optional<Device> find_device(const Nvml& nvml, const std::string& name) {
  if (const auto index = parse_integer(name)) {
    return find_by_index(nvml, static_cast<unsigned>(*index));
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
  const Nvml nvml;
  if (!nvml.is_ready()) return std::nullopt;
  const auto number = nvml.count();
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

std::vector<std::string> find_bus_ids(std::span<const std::string> names) {
  const Nvml nvml;
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

}  // namespace lockstep
