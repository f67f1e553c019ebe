#include "lockstep/launch/gpus.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "lockstep/base/nvml.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/gpu_bus.h"

namespace lockstep::launch {
namespace {

int count_by_proc() {
  std::error_code error;
  const std::filesystem::directory_iterator folder("/proc/driver/nvidia/gpus",
                                                   error);
  if (error) return 0;
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

bool is_valid(const std::string& name, int installed,
              const std::function<bool(const std::string&)>& knows_uuid) {
  if (name.starts_with("MIG-")) return true;
  if (name.starts_with("GPU-")) return !knows_uuid || knows_uuid(name);
  const auto index = base::parse_integer(name);
  return index && *index >= 0 && *index < installed;
}

}  // namespace

int count_installed_gpus() {
  if (!base::has_nvidia_driver()) return 0;
  if (const auto number = count_by_nvml()) return *number;
  return count_by_proc();
}

VisibleGpus find_visible_gpus(
    const base::Environment& environment,
    const std::function<int()>& count_installed,
    const std::function<bool(const std::string& name)>& knows_uuid) {
  VisibleGpus gpus;
  gpus.installed = count_installed();
  const auto setting = environment.find("CUDA_VISIBLE_DEVICES");
  if (setting != environment.end()) {
    gpus.setting = setting->second;
    if (base::trim(setting->second).empty()) return gpus;
  }
  if (gpus.installed == 0) return gpus;
  if (!gpus.setting) {
    for (int i = 0; i < gpus.installed; ++i) {
      gpus.names.push_back(std::to_string(i));
    }
    return gpus;
  }
  for (const std::string& entry : base::split(*gpus.setting, ',')) {
    std::string name(base::trim(entry));
    if (!is_valid(name, gpus.installed, knows_uuid)) break;
    // CUDA shows no GPU at all when one is named twice.
    if (std::find(gpus.names.begin(), gpus.names.end(), name) !=
        gpus.names.end()) {
      gpus.names.clear();
      break;
    }
    gpus.names.push_back(std::move(name));
  }
  return gpus;
}

}  // namespace lockstep::launch
