#include "lockstep/launch/worker.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>

#include "lockstep/base/clock.h"
#include "lockstep/base/crash_handler.h"
#include "lockstep/launch/processes.h"

namespace lockstep::launch {
namespace {

// The worker writes whole seconds; the file's own time orders failures within
// one second.
double time_of(const std::filesystem::path& path,
               const base::ErrorReport& report, double seen_at) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return seen_at;
  const double written = static_cast<double>(info.st_mtim.tv_sec) +
                         static_cast<double>(info.st_mtim.tv_nsec) * 1e-9;
  const auto claimed = static_cast<double>(report.unix_seconds);
  if (claimed > 0 && std::abs(written - claimed) > 2) return claimed;
  return written;
}

std::string position_text(const base::RankStatus& status) {
  const std::string phase = base::phase_name(status.phase);
  if (status.step < 0) return phase;
  return "step " + std::to_string(status.step) + ", " + phase;
}

}  // namespace

void Worker::signal_group(int signal) const {
  if (is_alive()) killpg(pid, signal);
}

RankSnapshot Worker::snapshot() const {
  RankSnapshot result;
  result.rank = rank;
  result.local_rank = local_rank;
  result.pid = pid;
  result.is_alive = is_alive();
  if (end) {
    result.exit_code = end->exit_code;
    result.ended_at = end->unix_time;
  }
  if (const auto info = find_process(pid); info && result.is_alive) {
    result.state = info->state;
  }
  result.status = status.read();
  if (const auto loop = training.read()) {
    result.is_paced = loop->activity != base::Activity::kNone &&
                      loop->activity != base::Activity::kFinishing;
  }
  for (const OutputStream& stream : streams) {
    const double quiet =
        base::seconds_between(stream.last_output_ns(), base::monotonic_ns());
    result.quiet_seconds =
        std::min(quiet, result.quiet_seconds.value_or(quiet));
  }
  return result;
}

bool Worker::has_error_file() const {
  return base::read_error_file(folder / "error.json").has_value();
}

Failure Worker::failure() const {
  Failure result;
  result.rank = rank;
  result.local_rank = local_rank;
  result.pid = pid;
  result.exit_code = end->exit_code;
  result.on_request = end->on_request;
  result.peak_bytes = end->peak_bytes;
  if (const auto page = status.read()) result.position = position_text(*page);
  if (end->exit_code < 0) {
    result.crash = read_crash_file(folder / base::kCrashFileName);
  }
  result.unix_time = end->unix_time;
  const auto error_file = folder / "error.json";
  result.error_file = error_file.string();
  result.error = base::read_error_file(error_file);
  if (result.error) {
    result.unix_time = time_of(error_file, *result.error, end->unix_time);
  }
  if (has_stderr_log) {
    result.last_lines =
        last_lines(folder / "stderr.log", OutputStream::kTailLines);
  } else if (stderr_stream) {
    const auto& tail = streams[*stderr_stream].tail();
    result.last_lines.assign(tail.begin(), tail.end());
  }
  return result;
}

int exit_code_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return -WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

double unix_now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace lockstep::launch
