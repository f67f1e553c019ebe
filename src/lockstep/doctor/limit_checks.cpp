#include "lockstep/doctor/limit_checks.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/base/files.h"
#include "lockstep/base/memory_cgroup.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/cause.h"

namespace lockstep::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMebibyte = int64_t{1} << 20;
// A worker without data: libtorch, with CUDA the context's host side.
constexpr int64_t kWorkerBytes = 512 * kMebibyte;
constexpr int64_t kLeastShm = 16 * kMebibyte;
constexpr int64_t kUsualShm = 1024 * kMebibyte;
// Sockets, libraries and logs of a worker, and its data files.
constexpr int64_t kFilesPerProcess = 128;
// The launcher's pipes and pages per worker.
constexpr int64_t kFilesPerRank = 8;
// A loader thread with the samples that it decodes and those that wait.
constexpr int64_t kLoaderBytes = 32 * kMebibyte;
// Threads of libtorch, Gloo and the autograd engine besides loaders.
constexpr int64_t kThreadsPerProcess = 24;

std::optional<int64_t> limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

std::optional<int64_t> number_in(const fs::path& file) {
  return base::parse_integer(
      base::trim(base::try_read_file(file).value_or("")));
}

// The folder of this process in the hierarchy of a controller, and that
// hierarchy's root.
struct CgroupPlace {
  fs::path folder;
  fs::path root;

  // The group and those above it: `visit` sees each folder.
  template <typename Visit>
  void for_each_level(Visit visit) const {
    for (fs::path at = folder;; at = at.parent_path()) {
      visit(at);
      if (at == root || !at.has_relative_path()) return;
    }
  }
};

CgroupPlace find_cgroup(const fs::path& membership, const fs::path& root,
                        const std::string& controller) {
  CgroupPlace place{.folder = root, .root = root};
  for (const std::string& line :
       base::split(base::try_read_file(membership).value_or(""), '\n')) {
    const auto parts = base::split(line, ':');
    if (parts.size() != 3) continue;
    const fs::path relative = fs::path(parts[2]).relative_path();
    const auto names = base::split(parts[1], ',');
    if (std::ranges::find(names, controller) != names.end()) {
      place = {.folder = root / controller / relative,
               .root = root / controller};
      break;
    }
    if (parts[0] == "0" && parts[1].empty()) place.folder = root / relative;
  }
  std::error_code error;
  // In a container the mount often begins at the group itself.
  if (!fs::exists(place.folder, error)) place.folder = place.root;
  return place;
}

int64_t value_of(const std::string& text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string::npos) return 0;
  const auto begin = text.find_first_of("0123456789", at);
  const auto end = text.find_first_not_of("0123456789", begin);
  return base::parse_integer(text.substr(begin, end - begin)).value_or(0);
}

void read_processes(Limits& limits) {
  const ProcessRoom room =
      process_room("/proc/self/cgroup", "/sys/fs/cgroup",
                   // root's processes are not counted.
                   geteuid() == 0 ? std::nullopt : limit_of(RLIMIT_NPROC));
  limits.processes = room.limit;
  limits.used_processes = room.used;
}

void read_memory(Limits& limits) {
  const std::string text = base::try_read_file("/proc/meminfo").value_or("");
  limits.memory_available = value_of(text, "MemAvailable:") * 1024;
  if (const auto room = base::MemoryCgroup().tightest_room()) {
    limits.memory_limit = room->limit_bytes;
    limits.memory_used = room->used_bytes;
  }
  limits.address_space = limit_of(RLIMIT_AS);
}

void read_cpus(Limits& limits) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    limits.cpus = std::max(1, CPU_COUNT(&set));
  }
  const auto quota = cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  if (!quota || *quota >= limits.cpus) return;
  limits.cpus = *quota;
  limits.has_cpu_quota = true;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& membership,
                                const fs::path& root) {
  std::optional<double> lowest;
  const auto take = [&](double quota, double period) {
    if (quota <= 0 || period <= 0) return;
    lowest = std::min(lowest.value_or(quota / period), quota / period);
  };
  find_cgroup(membership, root, "cpu").for_each_level([&](const fs::path& at) {
    const auto words = base::split(
        base::trim(base::try_read_file(at / "cpu.max").value_or("")), ' ');
    if (words.size() == 2) {
      take(static_cast<double>(base::parse_integer(words[0]).value_or(-1)),
           static_cast<double>(base::parse_integer(words[1]).value_or(-1)));
    }
    take(static_cast<double>(number_in(at / "cpu.cfs_quota_us").value_or(-1)),
         static_cast<double>(number_in(at / "cpu.cfs_period_us").value_or(-1)));
  });
  return lowest;
}

ProcessRoom process_room(const fs::path& membership, const fs::path& root,
                         std::optional<int64_t> user_limit) {
  const CgroupPlace place = find_cgroup(membership, root, "pids");
  ProcessRoom tightest{
      .limit = user_limit,
      .used = number_in(place.folder / "pids.current").value_or(0)};
  place.for_each_level([&](const fs::path& at) {
    const auto limit = number_in(at / "pids.max");
    const int64_t used = number_in(at / "pids.current").value_or(0);
    if (limit &&
        (!tightest.limit || *limit - used < *tightest.limit - tightest.used)) {
      tightest = {.limit = limit, .used = used};
    }
  });
  return tightest;
}

Limits read_limits() {
  Limits limits;
  const launch::SharedMemorySize shm = launch::shared_memory_size();
  limits.shm_total = shm.total_bytes;
  limits.shm_free = shm.free_bytes;
  limits.open_files = limit_of(RLIMIT_NOFILE);
  read_processes(limits);
  read_memory(limits);
  read_cpus(limits);
  return limits;
}

Finding check_shared_memory(const Limits& limits, const JobSize& job) {
  Finding finding{.check = "shared memory",
                  .text = fmt::format("/dev/shm has {}, {} free",
                                      base::bytes_text(limits.shm_total),
                                      base::bytes_text(limits.shm_free)),
                  .kind = Class::kLimits};
  if (limits.shm_free < kLeastShm) {
    finding.level = Level::kFailure;
    finding.mend = limits.shm_total < kUsualShm
                       ? "mount -o remount,size=8g /dev/shm; for a container: "
                         "docker run --shm-size=8g"
                       : "ls -la /dev/shm, and remove what ended jobs left";
  } else if (limits.shm_total < kUsualShm && job.uses_gpus) {
    finding.level = Level::kWarning;
    finding.text += ": NCCL may need more between GPUs";
    finding.mend = "docker run --shm-size=8g";
  }
  return finding;
}

Finding check_open_files(const Limits& limits, const JobSize& job) {
  Finding finding{.check = "open files", .kind = Class::kLimits};
  if (!limits.open_files) {
    finding.text = "no limit";
    return finding;
  }
  const int64_t needed =
      kFilesPerProcess + kFilesPerRank * job.num_processes + job.workers;
  finding.text = fmt::format("at most {} per process, about {} needed",
                             *limits.open_files, needed);
  if (*limits.open_files < needed) {
    finding.level = Level::kFailure;
    finding.mend = "ulimit -n 65536";
  } else if (*limits.open_files < 1024) {
    finding.level = Level::kWarning;
    finding.mend = "ulimit -n 65536";
  }
  return finding;
}

Finding check_processes(const Limits& limits, const JobSize& job) {
  Finding finding{.check = "processes", .kind = Class::kLimits};
  if (!limits.processes) {
    finding.text = "no limit of processes and threads";
    return finding;
  }
  const int64_t needed =
      job.num_processes * (kThreadsPerProcess + job.workers +
                           static_cast<int64_t>(std::ceil(limits.cpus))) +
      8;
  const int64_t left = *limits.processes - limits.used_processes;
  finding.text =
      fmt::format("{} of {} processes and threads left, about {} needed", left,
                  *limits.processes, needed);
  if (left < needed) {
    finding.level = Level::kFailure;
    finding.mend =
        "ulimit -u 65536; for a container: docker run "
        "--pids-limit=-1";
  }
  return finding;
}

Finding check_memory(const Limits& limits, const JobSize& job) {
  Finding finding{.check = "memory", .kind = Class::kLimits};
  int64_t available = limits.memory_available;
  finding.text = base::bytes_text(available) + " available";
  if (limits.memory_limit) {
    const int64_t left = *limits.memory_limit - limits.memory_used;
    if (left < available) {
      available = std::max<int64_t>(0, left);
      finding.text = fmt::format("{} left of the control group's limit of {}",
                                 base::bytes_text(available),
                                 base::bytes_text(*limits.memory_limit));
    }
  }
  // What was measured holds the loaders.
  const int64_t each = job.peak_bytes > 0
                           ? std::max(kWorkerBytes, job.peak_bytes)
                           : kWorkerBytes + kLoaderBytes * job.workers;
  finding.text +=
      fmt::format(", about {} needed by {} process{}",
                  base::bytes_text(each * job.num_processes), job.num_processes,
                  job.num_processes == 1 ? "" : "es");
  if (limits.address_space && *limits.address_space < each) {
    finding.level = Level::kFailure;
    finding.text += fmt::format("; a process may take {} (ulimit -v)",
                                base::bytes_text(*limits.address_space));
    finding.mend = "ulimit -v unlimited";
  } else if (available < each * job.num_processes) {
    finding.level = Level::kFailure;
    finding.mend = limits.memory_limit
                       ? "raise the limit (docker run --memory=...), or use "
                         "fewer processes, fewer --workers or a smaller "
                         "--batch_size"
                       : "fewer processes, fewer --workers or a smaller "
                         "--batch_size";
  }
  return finding;
}

Finding check_cpus(const Limits& limits, const JobSize& job) {
  Finding finding{.check = "cpus", .kind = Class::kLimits};
  const int64_t loaders = job.num_processes * job.workers;
  finding.text = fmt::format(
      "{:g} CPUs{} for {} process{} with {} loader "
      "thread{} each",
      limits.cpus, limits.has_cpu_quota ? " by quota" : "", job.num_processes,
      job.num_processes == 1 ? "" : "es", job.workers,
      job.workers == 1 ? "" : "s");
  if (static_cast<double>(job.num_processes) > limits.cpus) {
    finding.level = Level::kWarning;
    finding.text += ": processes share CPUs and do not run faster together";
    finding.mend = fmt::format(
        "--nproc {}", std::max(1, static_cast<int>(std::floor(limits.cpus))));
  } else if (static_cast<double>(loaders) > 2 * limits.cpus) {
    finding.level = Level::kWarning;
    const auto workers = std::max<int64_t>(
        1, static_cast<int64_t>(limits.cpus) / job.num_processes - 1);
    finding.text += ": loader threads wait for each other";
    finding.mend = fmt::format("--workers {}", workers);
  }
  return finding;
}

}  // namespace lockstep::doctor
