#include "lockstep/launch/memory_deaths.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

constexpr const char* kRemedies =
    "use a smaller batch per process, fewer loader workers, fewer processes, "
    "or raise the limit";

// The integer after `name`.
std::optional<int64_t> number_behind(const std::string& line,
                                     std::string_view name) {
  const auto at = line.find(name);
  if (at == std::string::npos) return std::nullopt;
  const auto begin = at + name.size();
  const auto end = line.find_first_not_of("0123456789", begin);
  return base::parse_integer(std::string_view(line).substr(
      begin, end == std::string::npos ? end : end - begin));
}

// A record per read; an old record that was overwritten is an error once.
std::string read_log(int fd) {
  std::string text;
  std::array<char, 8192> buffer{};
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

const KernelKill* find_kill(const MemoryFindings& findings, pid_t pid) {
  for (const KernelKill& kill : findings.kernel_kills) {
    if (kill.pid == pid) return &kill;
  }
  return nullptr;
}

std::string limit_text(const MemoryFindings& findings) {
  if (!findings.limit_bytes) return "";
  return fmt::format(" (memory limit of its control group: {})",
                     base::bytes_text(*findings.limit_bytes));
}

std::string reason_of(const KernelKill& kill, const MemoryFindings& findings) {
  if (!kill.is_cgroup_limit) return "the machine had no memory left";
  std::string text = "its control group reached its memory limit";
  if (findings.limit_bytes)
    text += " of " + base::bytes_text(*findings.limit_bytes);
  return text;
}

std::string meaning_of(const Failure& failure, const MemoryFindings& findings) {
  if (const KernelKill* kill = find_kill(findings, failure.pid)) {
    return fmt::format(
        "killed by the kernel's out-of-memory killer with {} resident: {}; {}",
        base::bytes_text(kill->resident_bytes), reason_of(*kill, findings),
        kRemedies);
  }
  if (!findings.num_kills) return "";
  if (*findings.num_kills > 0) {
    return fmt::format(
        "killed by the kernel's out-of-memory killer{}: {} counts {} killed "
        "process{} since the start; {}",
        limit_text(findings), findings.counter.string(), *findings.num_kills,
        *findings.num_kills == 1 ? "" : "es", kRemedies);
  }
  return fmt::format(
      "killed from outside, by a user, a batch system or a container; not by "
      "the kernel's out-of-memory killer: {} counts no kill",
      findings.counter.string());
}

}  // namespace

std::optional<KernelKill> parse_kernel_kill(const std::string& line) {
  const auto pid = number_behind(line, "Killed process ");
  if (!pid) return std::nullopt;
  KernelKill kill{.pid = static_cast<pid_t>(*pid),
                  .resident_bytes = 0,
                  .is_cgroup_limit = line.find("Memory cgroup out of memory") !=
                                     std::string::npos};
  for (const char* name : {"anon-rss:", "file-rss:", "shmem-rss:"}) {
    kill.resident_bytes += number_behind(line, name).value_or(0) * 1024;
  }
  return kill;
}

MemoryWatch::MemoryWatch(const MemorySources& sources)
    : cgroup_(sources.cgroup),
      num_kills_before_(cgroup_.num_oom_kills()),
      kernel_log_(
          open(sources.kernel_log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (kernel_log_) lseek(kernel_log_.get(), 0, SEEK_END);
}

MemoryFindings MemoryWatch::look() {
  if (kernel_log_) {
    for (const std::string& line :
         base::split(read_log(kernel_log_.get()), '\n')) {
      if (const auto kill = parse_kernel_kill(line)) {
        kernel_kills_.push_back(*kill);
      }
    }
  }
  MemoryFindings findings{.num_kills = {},
                          .counter = cgroup_.counter(),
                          .limit_bytes = cgroup_.limit_bytes(),
                          .kernel_kills = kernel_kills_};
  const auto now = cgroup_.num_oom_kills();
  if (now && num_kills_before_) findings.num_kills = *now - *num_kills_before_;
  return findings;
}

void explain_kills(std::span<Failure> failures,
                   const MemoryFindings& findings) {
  for (Failure& failure : failures) {
    if (failure.exit_code == -SIGKILL && !failure.error) {
      failure.meaning = meaning_of(failure, findings);
    }
  }
}

std::string other_kills_text(std::span<const Failure> failures,
                             const MemoryFindings& findings) {
  const auto explained = std::ranges::count_if(
      failures,
      [](const Failure& failure) { return failure.exit_code == -SIGKILL; });
  if (findings.num_kills.value_or(0) <= explained) return "";
  return fmt::format(
      "  the kernel's out-of-memory killer ended {} process{} of this control "
      "group while the job ran{}; {}\n",
      *findings.num_kills, *findings.num_kills == 1 ? "" : "es",
      limit_text(findings), kRemedies);
}

}  // namespace lockstep::launch
