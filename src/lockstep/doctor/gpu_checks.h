// GPUs of this machine, as driver and PCI bus show them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/doctor/finding.h"
#include "lockstep/launch/gpus.h"

namespace lockstep::doctor {

struct GpuFacts {
  launch::VisibleGpus visible = {};
  bool has_driver = false;            // The kernel module is loaded.
  bool has_nvml = false;              // Its library answers.
  std::string driver_version = {};    // "580.82.07"
  int driver_cuda = 0;                // 13000: the newest CUDA it can run.
  std::vector<std::string> bus = {};  // NVIDIA GPUs on the PCI bus.
  int nodes = 0;                      // Files /dev/nvidia0, ...
  int known = 0;                      // GPUs that the driver shows.
};

// Facts about this machine.
GpuFacts read_gpus(const launch::VisibleGpus& visible);

struct GpuDemand {
  int num_processes = 1;
  bool wants_gpus = false;   // --device cuda, --nproc gpu
  bool wants_cpus = false;   // --device cpu
  bool shares_gpus = false;  // --share-gpus
  int torch_cuda = 13000;    // CUDA of the torch that is linked; 0: none.
};

Finding check_gpu_count(const GpuFacts& facts, const GpuDemand& demand);
Finding check_driver(const GpuFacts& facts, const GpuDemand& demand);
// GPUs that this machine or container was given, by their device files, and
// that the driver does not show. No value where the PCI bus shows no NVIDIA
// GPU.
std::optional<Finding> check_dropped_gpus(const GpuFacts& facts);

// 13000 of "13.0"; 0 of an empty text.
int cuda_number(const std::string& version);

}  // namespace lockstep::doctor
