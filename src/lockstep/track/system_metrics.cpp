#include "lockstep/track/system_metrics.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::track {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

constexpr double kMebibyte = 1024.0 * 1024;
constexpr double kGibibyte = 1024.0 * kMebibyte;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& word : base::split(line, ' ')) {
    if (!base::trim(word).empty()) words.emplace_back(base::trim(word));
  }
  return words;
}

// The number behind "Name:" at the beginning of a line.
std::optional<double> number_after(std::string_view text,
                                   std::string_view name) {
  for (const std::string& line : base::split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const auto words =
        words_of(base::replace_all(line.substr(name.size()), "\t", " "));
    if (words.empty()) return std::nullopt;
    return base::parse_number(words[0]);
  }
  return std::nullopt;
}

uint64_t cpu_ticks_now() {
  const auto stat = base::try_read_file("/proc/self/stat");
  return stat ? parse_cpu_ticks(*stat).value_or(0) : 0;
}

std::optional<NetworkTraffic> traffic_now() {
  const auto devices = base::try_read_file("/proc/net/dev");
  return devices ? parse_network(*devices) : std::nullopt;
}

void add_memory(Metrics& metrics) {
  const auto meminfo = base::try_read_file("/proc/meminfo");
  const auto status = base::try_read_file("/proc/self/status");
  const auto machine = meminfo ? parse_meminfo(*meminfo) : std::nullopt;
  const auto process = status ? parse_process_status(*status) : std::nullopt;
  if (machine) {
    metrics.emplace_back(
        "memory_percent",
        100 * (1 - machine->available_bytes / machine->total_bytes));
    metrics.emplace_back("proc.memory.availableMB",
                         machine->available_bytes / kMebibyte);
  }
  if (process) {
    metrics.emplace_back("proc.memory.rssMB",
                         process->resident_bytes / kMebibyte);
    metrics.emplace_back("proc.cpu.threads", process->num_threads);
  }
  if (machine && process) {
    metrics.emplace_back("proc.memory.percent",
                         100 * process->resident_bytes / machine->total_bytes);
  }
}

void add_disk(Metrics& metrics, const std::filesystem::path& disk) {
  struct statvfs info{};
  if (statvfs(disk.c_str(), &info) != 0 || info.f_blocks == 0) return;
  const auto block = static_cast<double>(info.f_frsize);
  const double used = block * static_cast<double>(info.f_blocks - info.f_bfree);
  const double usable = used + block * static_cast<double>(info.f_bavail);
  const std::string name = "disk." + disk.string();
  metrics.emplace_back(name + ".usageGB", used / kGibibyte);
  if (usable > 0) {
    metrics.emplace_back(name + ".usagePercent", 100 * used / usable);
  }
}

}  // namespace

std::optional<uint64_t> parse_cpu_ticks(std::string_view stat) {
  // The program's name stands in brackets and may hold blanks and brackets.
  const auto end_of_name = stat.rfind(')');
  if (end_of_name == std::string_view::npos) return std::nullopt;
  const auto words = words_of(stat.substr(end_of_name + 1));
  // Fields 14 and 15 of the line; the first word here is field 3.
  if (words.size() < 13) return std::nullopt;
  const auto user = base::parse_integer(words[11]);
  const auto system = base::parse_integer(words[12]);
  if (!user || !system) return std::nullopt;
  return static_cast<uint64_t>(*user + *system);
}

std::optional<ProcessUse> parse_process_status(std::string_view status) {
  const auto resident_kib = number_after(status, "VmRSS:");
  const auto num_threads = number_after(status, "Threads:");
  if (!resident_kib || !num_threads) return std::nullopt;
  return ProcessUse{*resident_kib * 1024, *num_threads};
}

std::optional<MachineMemory> parse_meminfo(std::string_view meminfo) {
  const auto total_kib = number_after(meminfo, "MemTotal:");
  const auto available_kib = number_after(meminfo, "MemAvailable:");
  if (!total_kib || !available_kib || *total_kib <= 0) return std::nullopt;
  return MachineMemory{*total_kib * 1024, *available_kib * 1024};
}

std::optional<NetworkTraffic> parse_network(std::string_view devices) {
  NetworkTraffic traffic;
  bool is_known = false;
  for (const std::string& line : base::split(devices, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto name = base::trim(std::string_view(line).substr(0, colon));
    const auto words = words_of(std::string_view(line).substr(colon + 1));
    // 8 numbers of what was received, then those of what was sent.
    if (name == "lo" || words.size() < 9) continue;
    const auto received = base::parse_number(words[0]);
    const auto sent = base::parse_number(words[8]);
    if (!received || !sent) continue;
    traffic.received_bytes += *received;
    traffic.sent_bytes += *sent;
    is_known = true;
  }
  if (!is_known) return std::nullopt;
  return traffic;
}

std::filesystem::path mount_point(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path here = std::filesystem::absolute(path, error);
  struct stat info{};
  if (error || stat(here.c_str(), &info) != 0) return "/";
  const dev_t device = info.st_dev;
  while (here.has_relative_path()) {
    const auto above = here.parent_path();
    if (stat(above.c_str(), &info) != 0 || info.st_dev != device) break;
    here = above;
  }
  return here;
}

SystemMetrics::SystemMetrics(const std::filesystem::path& folder)
    : disk_(mount_point(folder)),
      traffic_before_(traffic_now()),
      last_cpu_ticks_(cpu_ticks_now()),
      last_sample_ns_(base::monotonic_ns()) {}

std::optional<double> SystemMetrics::cpu_percent() {
  const uint64_t ticks = cpu_ticks_now();
  const int64_t now_ns = base::monotonic_ns();
  const double wall_seconds = base::seconds_between(last_sample_ns_, now_ns);
  const double cpu_seconds =
      static_cast<double>(ticks - std::min(ticks, last_cpu_ticks_)) /
      static_cast<double>(sysconf(_SC_CLK_TCK));
  last_cpu_ticks_ = ticks;
  last_sample_ns_ = now_ns;
  if (wall_seconds <= 0) return std::nullopt;
  const double num_processors =
      std::max(1U, std::thread::hardware_concurrency());
  return 100 * cpu_seconds / wall_seconds / num_processors;
}

std::vector<std::pair<std::string, double>> SystemMetrics::sample() {
  Metrics metrics;
  if (const auto percent = cpu_percent()) metrics.emplace_back("cpu", *percent);
  add_memory(metrics);
  add_disk(metrics, disk_);
  const auto traffic = traffic_now();
  if (traffic && traffic_before_) {
    metrics.emplace_back("network.sent",
                         traffic->sent_bytes - traffic_before_->sent_bytes);
    metrics.emplace_back("network.recv", traffic->received_bytes -
                                             traffic_before_->received_bytes);
  }
  const auto of_gpus = gpus_.metrics();
  metrics.insert(metrics.end(), of_gpus.begin(), of_gpus.end());
  return metrics;
}

}  // namespace lockstep::track
