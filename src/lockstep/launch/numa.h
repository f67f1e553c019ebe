// Which CPUs lie near which GPU, from sysfs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

using CpuList = std::vector<int>;  // logical CPUs, ascending

// The CPUs of a worker: those of the NUMA node of its GPU, of all nodes of that
// socket, an equal part of the cores of the node, or one group of cores of the
// node with a common last-level cache.
enum class NumaMode { kNode, kSocket, kExclusive, kCoreComplex };

// Throws ConfigError that lists the modes.
NumaMode parse_numa_mode(std::string_view text);

// "0-2,4" as sysfs writes it; no value for any other text.
std::optional<CpuList> parse_cpu_list(std::string_view text);

// Those that this process may run on.
CpuList find_allowed_cpus();

struct NumaRequest {
  NumaMode mode = NumaMode::kNode;
  std::vector<std::string> bus_ids;  // of the visible GPUs, 0000:3b:00.0
  int num_workers = 1;  // worker i uses GPU i modulo the number of GPUs
  CpuList allowed;      // no other CPU is chosen
};

// CPUs by worker, never an empty list. As under torchrun a visible GPU keeps
// its part even when no worker uses it. Throws ConfigError when sysfs does not
// know the NUMA node of a GPU or when a worker would be left without a CPU.
std::vector<CpuList> choose_near_cpus(
    const NumaRequest& request, const std::filesystem::path& sysfs = "/sys");

}  // namespace lockstep::launch
