#include "lockstep/launch/process_activity.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/processes.h"

namespace lockstep::launch {
namespace {

constexpr double kBusyFraction = 0.05;  // of one core
constexpr int kMaxThreads = 4;          // named in a text

// Fields of /proc/PID/stat behind the command; the first one is field 3.
std::vector<std::string> stat_fields(const std::string& folder) {
  const auto stat = base::try_read_file(folder + "/stat");
  if (!stat) return {};
  const auto close = stat->rfind(')');
  if (close == std::string::npos || close + 2 >= stat->size()) return {};
  return base::split(stat->substr(close + 2), ' ');
}

int64_t number_at(const std::vector<std::string>& fields, size_t number) {
  const size_t index = number - 3;
  if (index >= fields.size()) return 0;
  return base::parse_integer(fields[index]).value_or(0);
}

int64_t io_bytes_of(const std::string& folder) {
  const auto text = base::try_read_file(folder + "/io");
  if (!text) return 0;
  int64_t bytes = 0;
  for (const std::string& line : base::split(*text, '\n')) {
    const auto words = base::split(line, ' ');
    if (words.size() != 2) continue;
    const std::string& name = words[0];
    if (name == "rchar:" || name == "wchar:" || name == "read_bytes:" ||
        name == "write_bytes:") {
      bytes += base::parse_integer(words[1]).value_or(0);
    }
  }
  return bytes;
}

void add_process(pid_t pid, ProcessActivity& sum) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto fields = stat_fields(folder);
  if (fields.empty()) return;
  int64_t ticks = 0;
  for (const size_t field : {14, 15, 16, 17}) ticks += number_at(fields, field);
  sum.cpu_seconds +=
      static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  sum.major_faults += number_at(fields, 12) + number_at(fields, 13);
  sum.io_bytes += io_bytes_of(folder);
}

// "[<0>] pipe_read+0x1/0x2" -> "pipe_read"; empty when hidden.
std::string innermost_function(const std::string& stack) {
  const auto line = stack.substr(0, stack.find('\n'));
  const auto begin = line.find("] ");
  if (begin == std::string::npos) return "";
  const auto name = line.substr(begin + 2);
  return name.substr(0, name.find('+'));
}

// Any user sees wchan where the kernel has it; the stack is for root.
std::string kernel_function(const std::string& folder) {
  const auto wchan = base::try_read_file(folder + "/wchan");
  if (wchan && !wchan->empty() && std::isdigit((*wchan)[0]) == 0) {
    return std::string(base::trim(*wchan));
  }
  const auto stack = base::try_read_file(folder + "/stack");
  return stack ? innermost_function(*stack) : "";
}

// The file that a thread reads, writes or syncs at this moment; empty when it
// does something else or the system hides it.
std::string file_in_use(const std::string& process, const std::string& thread) {
  constexpr std::array<int64_t, 8> kCalls = {
      SYS_read,     SYS_pread64, SYS_readv, SYS_write,
      SYS_pwrite64, SYS_writev,  SYS_fsync, SYS_fdatasync};
  const auto call = base::try_read_file(thread + "/syscall");
  if (!call) return "";
  const auto words = base::split(*call, ' ');
  const auto number = base::parse_integer(words[0]);
  if (words.size() < 2 || !number ||
      std::find(kCalls.begin(), kCalls.end(), *number) == kCalls.end()) {
    return "";
  }
  const long fd = std::strtol(words[1].c_str(), nullptr, 16);
  std::error_code error;
  return std::filesystem::read_symlink(process + "/fd/" + std::to_string(fd),
                                       error)
      .string();
}

// Where threads wait that have nothing to do.
bool is_ordinary(const std::string& function) {
  constexpr std::array<std::string_view, 6> kParts = {
      "futex", "poll", "nanosleep", "sigtimedwait", "wait_woken", "accept"};
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
    return function.find(part) != std::string::npos;
  });
}

// One thread as its files show it.
struct ThreadPlace {
  char state = '?';
  std::string function;
  std::string file;

  bool is_telling() const {
    if (state == 'D') return true;
    if (state != 'S') return false;
    return file.starts_with('/') ||
           (!function.empty() && !is_ordinary(function));
  }

  std::string text() const {
    std::string result = state_name(state);
    if (state == 'D') result += " (state D; a hung file system?)";
    if (!function.empty()) result += " in " + function;
    if (!file.empty()) result += " on " + file;
    return result;
  }
};

ThreadPlace place_of(const std::string& process, const std::string& thread) {
  const auto fields = stat_fields(thread);
  if (fields.empty() || fields[0].empty()) return {};
  const char state = fields[0][0];
  ThreadPlace place;
  place.state = state;
  if (state != 'S' && state != 'D') return place;
  place.function = kernel_function(thread);
  place.file = file_in_use(process, thread);
  return place;
}

}  // namespace

ProcessActivity activity_of(pid_t root) {
  ProcessActivity sum;
  add_process(root, sum);
  for (const ProcessInfo& process : find_descendants(root)) {
    add_process(process.pid, sum);
  }
  return sum;
}

bool has_worked(const ProcessActivity& before, const ProcessActivity& after,
                double seconds) {
  return after.cpu_seconds - before.cpu_seconds > kBusyFraction * seconds ||
         after.io_bytes > before.io_bytes ||
         after.major_faults > before.major_faults;
}

std::string waiting_text(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  if (!find_process(pid)) return "gone";
  std::string text = place_of(process, process).text();
  std::error_code error;
  int num_named = 0;
  for (std::filesystem::directory_iterator task(process + "/task", error), end;
       !error && task != end; task.increment(error)) {
    const std::string thread = task->path().filename().string();
    if (thread == std::to_string(pid)) continue;
    const ThreadPlace place = place_of(process, task->path().string());
    if (!place.is_telling()) continue;
    if (++num_named > kMaxThreads) break;
    text += fmt::format(", thread {} {}", thread, place.text());
  }
  return text;
}

}  // namespace lockstep::launch
