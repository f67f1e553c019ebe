#include "lockstep/cli/startup_text.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "lockstep/base/environment.h"
#include "lockstep/base/gpu_setting.h"
#include "lockstep/base/memory_cgroup.h"
#include "lockstep/base/strings.h"
#include "lockstep/comm/explain.h"
#include "lockstep/tensor/device.h"

namespace lockstep::cli {
namespace {

// The demo recipe, expected to run on a CPU.
constexpr std::string_view kRecipeForCpus = "tiny";

// "tried to allocate 20.00 MiB, " from the allocator's message; empty without
// it.
std::string attempt_text(std::string_view error) {
  for (const std::string_view words :
       {"Tried to allocate ", "you tried to allocate "}) {
    const size_t begin = error.find(words);
    if (begin == std::string_view::npos) continue;
    std::string_view rest = error.substr(begin + words.size());
    rest = rest.substr(0, rest.find(". "));
    return fmt::format("tried to allocate {}, ",
                       rest.substr(0, rest.find('\n')));
  }
  return "";
}

// Memory limits below the machine's memory, if any.
std::string host_limits_text() {
  std::string text;
  if (const auto limit = base::MemoryCgroup().limit_bytes()) {
    text +=
        fmt::format(", control group limited to {}", base::bytes_text(*limit));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text += fmt::format(", address space limited to {} (ulimit -v)",
                        base::bytes_text(static_cast<int64_t>(limit.rlim_cur)));
  }
  return text;
}

}  // namespace

std::string setup_text(const World& world) {
  std::string text = fmt::format(
      "Training setup:\n"
      "  Distributed: {}\n"
      "  World size: {}\n"
      "  Rank: {}, Local rank: {}\n"
      "  Device: {}",
      world.size() > 1 ? "True" : "False", world.size(), world.rank(),
      world.local_rank(), world.device().str());
  const auto places = world.gather_texts(
      fmt::format("host {}, {} ({})", base::host_name(),
                  tensor::device_name(world.device()), world.device().str()));
  for (size_t rank = 0; rank < places.size(); ++rank) {
    text += fmt::format("\n  Rank {}: {}", rank, places[rank]);
  }
  return text;
}

std::string cpu_text(c10::Device device, const std::string& choice,
                     const std::string& recipe,
                     const base::Environment& environment) {
  if (!device.is_cpu() || choice != "auto" || recipe == kRecipeForCpus) {
    return "";
  }
  const auto setting = environment.find("CUDA_VISIBLE_DEVICES");
  if (setting != environment.end() && base::means_cpus(setting->second))
    return "";
  return fmt::format(
      "No usable GPU: {} trains on the CPU, which is much slower; --device cpu "
      "silences this warning",
      recipe);
}

std::string out_of_memory_text(const World& world, const std::string& what,
                               std::string_view error, int64_t batch_size,
                               const std::vector<std::string>& remedies) {
  const bool is_host =
      comm::recognise(error).kind == comm::FaultKind::kOutOfHostMemory;
  const c10::Device device = is_host ? at::kCPU : world.device();
  const tensor::DeviceMemory memory = tensor::device_memory(device);
  std::string text = fmt::format(
      "out of memory on rank {} of {} ({}, {}) at {}: batch of {} per process, "
      "{}{} used by this process (peak {}), {} free of {}",
      world.rank(), world.size(), tensor::device_name(device), device.str(),
      what, batch_size, attempt_text(error),
      base::bytes_text(memory.used_bytes), base::bytes_text(memory.peak_bytes),
      base::bytes_text(memory.free_bytes),
      base::bytes_text(memory.total_bytes));
  if (device.is_cpu()) text += host_limits_text();
  if (remedies.empty()) return text;
  text += "; try, in this order:";
  for (const std::string& remedy : remedies) text += "\n  " + remedy;
  return text;
}

}  // namespace lockstep::cli
