#include "lockstep/base/gpu_setting.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"

namespace lockstep::base {

bool means_cpus(std::string_view cuda_visible_devices) {
  const std::string_view text = trim(cuda_visible_devices);
  return text.empty() || text == "-1" || text == "NoDevFiles";
}

bool misses_gpus(const std::optional<std::string>& setting, int installed) {
  return installed > 0 && !(setting && means_cpus(*setting));
}

std::string installed_gpus_text(int installed) {
  if (installed == 1) return "1 GPU (0)";
  return fmt::format("{} GPUs (0 {} {})", installed,
                     installed == 2 ? "and" : "to", installed - 1);
}

std::string none_visible_text(const std::optional<std::string>& setting,
                              int installed) {
  if (installed == 0) {
    if (!setting) return "no GPU is visible";
    return fmt::format(
        "no GPU is visible: this machine has none (CUDA_VISIBLE_DEVICES={})",
        *setting);
  }
  const std::string gpus = installed_gpus_text(installed);
  if (!setting) {
    return fmt::format(
        "no GPU is visible although this machine has {}; check that nvidia-smi "
        "works",
        gpus);
  }
  return fmt::format(
      "no GPU is visible: CUDA_VISIBLE_DEVICES={} shows none, and this machine "
      "has {}",
      *setting, gpus);
}

}  // namespace lockstep::base
