// How many GPUs the workers will see, without any CUDA library.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::launch {

struct VisibleGpus {
  std::vector<std::string> names;      // as written in CUDA_VISIBLE_DEVICES
  std::optional<std::string> setting;  // CUDA_VISIBLE_DEVICES where it is set
  int installed = 0;                   // GPUs of this machine, hidden ones too
  int count() const { return static_cast<int>(names.size()); }
};

// GPUs of this machine by NVML, else by the driver's /proc folder, else 0.
int count_installed_gpus();

// Follows CUDA: a list of indices or UUIDs (GPU-..., MIG-...) that ends at the
// first entry that is not valid; an empty list or -1 means none. The counting
// function is called at most once. `knows_uuid` is asked about names such as
// GPU-8a56; without it all of them are taken for valid.
VisibleGpus find_visible_gpus(
    const base::Environment& environment,
    const std::function<int()>& count_installed = count_installed_gpus,
    const std::function<bool(const std::string& name)>& knows_uuid = {});

}  // namespace lockstep::launch
