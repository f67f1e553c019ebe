#include "lockstep/doctor/gpu_checks.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/base/gpu_setting.h"
#include "lockstep/base/nvml.h"
#include "lockstep/base/strings.h"

namespace lockstep::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNvidiaVendor = "0x10de";

std::string trimmed_text(const fs::path& file) {
  return std::string(base::trim(base::try_read_file(file).value_or("")));
}

// Display controllers (class 0x03....) of NVIDIA.
std::vector<std::string> gpus_on_bus() {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry("/sys/bus/pci/devices", error), end;
       !error && entry != end; entry.increment(error)) {
    const fs::path& device = entry->path();
    if (trimmed_text(device / "vendor") == kNvidiaVendor &&
        trimmed_text(device / "class").starts_with("0x03")) {
      found.push_back(device.filename().string());
    }
  }
  return found;
}

// A container has the files of its own GPUs, while the bus shows all.
int count_device_files() {
  constexpr std::string_view kName = "nvidia";
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/dev", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kName) &&
        base::parse_integer(name.substr(kName.size()))) {
      ++count;
    }
  }
  return count;
}

std::string version_text(int cuda) {
  return fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
}

std::string count_text(const GpuFacts& facts) {
  const int count = facts.visible.count();
  std::string text =
      fmt::format("{} GPU{} visible", count, count == 1 ? "" : "s");
  if (facts.visible.setting) {
    text += " (CUDA_VISIBLE_DEVICES=" + *facts.visible.setting + ")";
  }
  return text;
}

}  // namespace

int cuda_number(const std::string& version) {
  const auto parts = base::split(version, '.');
  const auto major = base::parse_integer(parts[0]);
  if (!major) return 0;
  const auto minor =
      parts.size() > 1 ? base::parse_integer(parts[1]) : std::nullopt;
  return static_cast<int>(*major * 1000 + minor.value_or(0) * 10);
}

GpuFacts read_gpus(const launch::VisibleGpus& visible) {
  GpuFacts facts{.visible = visible,
                 .has_driver = base::has_nvidia_driver(),
                 .bus = gpus_on_bus(),
                 .nodes = count_device_files()};
  if (!facts.has_driver) return facts;
  const base::Nvml nvml;
  facts.has_nvml = nvml.is_ready();
  if (!facts.has_nvml) return facts;
  std::array<char, 80> text{};
  if (nvml.call("nvmlSystemGetDriverVersion", text.data(),
                static_cast<unsigned>(text.size() - 1))) {
    facts.driver_version = text.data();
  }
  nvml.call("nvmlSystemGetCudaDriverVersion_v2", &facts.driver_cuda);
  facts.known = static_cast<int>(nvml.count().value_or(0));
  return facts;
}

Finding check_gpu_count(const GpuFacts& facts, const GpuDemand& demand) {
  Finding finding{.check = "gpus", .text = count_text(facts)};
  const int count = facts.visible.count();
  if (demand.wants_cpus) {
    finding.text +=
        fmt::format(", {} process{} on CPUs as asked", demand.num_processes,
                    demand.num_processes == 1 ? "" : "es");
    return finding;
  }
  finding.text += fmt::format(" for {} process{}", demand.num_processes,
                              demand.num_processes == 1 ? "" : "es");
  const bool is_hidden =
      count == 0 && facts.visible.installed > 0 &&
      !(facts.visible.setting && base::means_cpus(*facts.visible.setting));
  if (is_hidden) {
    finding.level = Level::kFailure;
    finding.mend = "unset CUDA_VISIBLE_DEVICES";
  } else if (count == 0 && demand.wants_gpus) {
    finding.level = Level::kFailure;
    finding.mend =
        "nvidia-smi shows none either? then leave --device out, or "
        "use --device cpu";
  } else if (count > 0 && demand.num_processes > count && !demand.shares_gpus) {
    finding.level = Level::kFailure;
    finding.mend = fmt::format("--nproc {}, or --share-gpus", count);
  } else if (count > demand.num_processes) {
    finding.level = Level::kWarning;
    finding.text += fmt::format(": {} stay idle", count - demand.num_processes);
    finding.mend = fmt::format("--nproc {}", count);
  }
  return finding;
}

Finding check_driver(const GpuFacts& facts, const GpuDemand& demand) {
  Finding finding{.check = "driver", .kind = Class::kDevice};
  const std::string needed = version_text(demand.torch_cuda);
  if (!facts.has_driver) {
    finding.text = "no NVIDIA driver: CPUs are used";
    if (facts.bus.empty()) return finding;
    finding.level = Level::kWarning;
    finding.text =
        fmt::format("no NVIDIA driver, but {} NVIDIA GPU{} on the PCI bus",
                    facts.bus.size(), facts.bus.size() == 1 ? "" : "s");
    finding.mend = "install a driver for CUDA " + needed +
                   "; in a container start it with --gpus all";
    return finding;
  }
  if (!facts.has_nvml) {
    finding.level = Level::kFailure;
    finding.text =
        "the NVIDIA kernel module is loaded, but its library NVML does not "
        "answer: a driver update without a reboot, or a container without "
        "the driver's libraries";
    finding.mend =
        "nvidia-smi, then reboot, or start the container with "
        "--gpus all";
    return finding;
  }
  finding.text =
      fmt::format("driver {} runs CUDA up to {}", facts.driver_version,
                  version_text(facts.driver_cuda));
  if (demand.torch_cuda == 0) {
    finding.text += "; the torch here is a CPU build";
    return finding;
  }
  finding.text += fmt::format(", torch here is built for CUDA {}", needed);
  // Within a major version newer toolkits run on older drivers.
  if (facts.driver_cuda / 1000 < demand.torch_cuda / 1000) {
    finding.level = Level::kFailure;
    finding.text += ": the driver is too old";
    finding.mend = demand.torch_cuda >= 13000
                       ? "install driver 580 or later, or a build for CUDA 12: "
                         "docs/how-to/building-for-other-torch.md"
                       : "install a newer driver";
  }
  return finding;
}

std::optional<Finding> check_dropped_gpus(const GpuFacts& facts) {
  if (facts.bus.empty() || !facts.has_nvml) return std::nullopt;
  Finding finding{
      .check = "dropped gpus",
      .text = fmt::format("the driver shows {} of {} GPUs with a device file, "
                          "{} on the PCI bus",
                          facts.known, facts.nodes, facts.bus.size()),
      .kind = Class::kDevice};
  if (facts.known >= facts.nodes) return finding;
  finding.level = Level::kFailure;
  finding.text +=
      fmt::format(" ({}): it has dropped {}", base::join(facts.bus, ", "),
                  facts.nodes - facts.known);
  finding.mend = "dmesg -T | grep -i xid, then reset the GPU or reboot";
  return finding;
}

}  // namespace lockstep::doctor
