// CUDA_VISIBLE_DEVICES in messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::base {

// True for a setting that hides every GPU on purpose: empty, -1, or Slurm's
// NoDevFiles.
bool means_cpus(std::string_view cuda_visible_devices);

// True when the machine has GPUs and a process sees none of them, but not on
// purpose: CUDA_VISIBLE_DEVICES is not set or names others.
bool misses_gpus(const std::optional<std::string>& setting, int installed);

// "1 GPU (0)", "2 GPUs (0 and 1)", "8 GPUs (0 to 7)". At least one.
std::string installed_gpus_text(int installed);

// Why no GPU is visible, with the variable and the GPUs that exist.
// `setting` is the value of CUDA_VISIBLE_DEVICES, without value when it is not
// set; `installed` counts the GPUs of the machine.
std::string none_visible_text(const std::optional<std::string>& setting,
                              int installed);

}  // namespace lockstep::base
