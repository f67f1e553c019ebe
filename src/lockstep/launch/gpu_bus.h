// GPUs counted and found on the PCI bus by NVIDIA's management library.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::launch {

// GPUs of this machine; no value without the library.
std::optional<int> count_by_nvml();

// Whether a name such as GPU-8a56 (the beginning suffices) is a GPU of this
// machine; true without the library.
bool is_known_gpu(const std::string& uuid);

// The PCI address of each GPU as sysfs writes it (0000:3b:00.0). A name is an
// entry of CUDA_VISIBLE_DEVICES; an index counts in PCI order. Throws
// ConfigError without the library and for a GPU that it does not know.
std::vector<std::string> find_bus_ids(std::span<const std::string> names);

// The same address in sysfs's spelling: lower case, domain of four digits.
std::string sysfs_bus_id(unsigned domain, unsigned bus, unsigned device);

}  // namespace lockstep::launch
