// What this process and its machine do: processor, memory, disk, network, GPUs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/track/gpu_metrics.h"

namespace lockstep::track {

// The functions below read the text of a file of /proc; no value when it is not
// what they expect.

// Processor time of a process, in clock ticks (/proc/self/stat).
std::optional<uint64_t> parse_cpu_ticks(std::string_view stat);

struct ProcessUse {
  double resident_bytes = 0;
  double num_threads = 0;
};
std::optional<ProcessUse> parse_process_status(std::string_view status);

struct MachineMemory {
  double total_bytes = 0;
  double available_bytes = 0;
};
std::optional<MachineMemory> parse_meminfo(std::string_view meminfo);

// Over all interfaces but the loopback (/proc/net/dev).
struct NetworkTraffic {
  double received_bytes = 0;
  double sent_bytes = 0;
};
std::optional<NetworkTraffic> parse_network(std::string_view devices);

// The folder that the file system of a path is mounted at.
std::filesystem::path mount_point(const std::filesystem::path& path);

// Not thread-safe. Nothing here throws: what cannot be read is left out.
class SystemMetrics {
 public:
  // The disk is that of the folder.
  explicit SystemMetrics(const std::filesystem::path& folder);

  const Gpus& gpus() const { return gpus_; }

  // Under the names that Weights & Biases has panels for. "cpu" is the use by
  // this process since the last call, 100 being all processors; the network's
  // bytes count from the construction. Takes less than a millisecond without
  // GPUs.
  std::vector<std::pair<std::string, double>> sample();

 private:
  std::optional<double> cpu_percent();

  std::filesystem::path disk_;
  std::optional<NetworkTraffic> traffic_before_;
  uint64_t last_cpu_ticks_ = 0;
  int64_t last_sample_ns_ = 0;
  Gpus gpus_;
};

}  // namespace lockstep::track
