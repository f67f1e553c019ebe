#include "lockstep/launch/gpus.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// While it lives, threads that start take no signal.
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

// Ending NVML again costs milliseconds; the process is short-lived and the
// library keeps nothing outside of it. NVML leaves a thread behind: it must not
// take the SIGCHLD that the launcher waits for.
std::optional<int> count_by_nvml() {
  const AllSignalsBlocked for_nvml_threads;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  using Init = int (*)();
  using Count = int (*)(unsigned int*);
  const auto init = reinterpret_cast<Init>(dlsym(library, "nvmlInit_v2"));
  const auto count =
      reinterpret_cast<Count>(dlsym(library, "nvmlDeviceGetCount_v2"));
  unsigned int number = 0;
  if (init == nullptr || count == nullptr || init() != 0 ||
      count(&number) != 0) {
    return std::nullopt;
  }
  return static_cast<int>(number);
}

int count_by_proc() {
  std::error_code error;
  const std::filesystem::directory_iterator folder("/proc/driver/nvidia/gpus",
                                                   error);
  if (error) return 0;
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

bool is_valid(const std::string& name, int installed) {
  if (name.starts_with("GPU-") || name.starts_with("MIG-")) return true;
  const auto index = parse_integer(name);
  return index && *index >= 0 && *index < installed;
}

}  // namespace

int count_installed_gpus() {
  // Loading NVML costs milliseconds: not without a driver.
  if (access("/dev/nvidiactl", F_OK) != 0 && access("/dev/dxg", F_OK) != 0) {
    return 0;
  }
  if (const auto number = count_by_nvml()) return *number;
  return count_by_proc();
}

VisibleGpus find_visible_gpus(const Environment& environment,
                              const std::function<int()>& count_installed) {
  VisibleGpus gpus;
  const auto setting = environment.find("CUDA_VISIBLE_DEVICES");
  if (setting != environment.end()) {
    gpus.setting = setting->second;
    if (trim(setting->second).empty()) return gpus;
  }
  const int installed = count_installed();
  if (installed == 0) return gpus;
  if (!gpus.setting) {
    for (int i = 0; i < installed; ++i) gpus.names.push_back(std::to_string(i));
    return gpus;
  }
  for (const std::string& entry : split(*gpus.setting, ',')) {
    std::string name(trim(entry));
    if (!is_valid(name, installed)) break;
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

}  // namespace lockstep
