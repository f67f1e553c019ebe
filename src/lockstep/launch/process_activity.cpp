#include "lockstep/launch/process_activity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/processes.h"

namespace lockstep {
namespace {

constexpr double kBusyShare = 0.05;  // of one core
constexpr int kMaxThreads = 4;       // named in a text

// Fields of /proc/PID/stat behind the command; the first one is field 3.
std::vector<std::string> stat_fields(const std::string& folder) {
  const auto stat = try_read_file(folder + "/stat");
  if (!stat) return {};
  const auto close = stat->rfind(')');
  if (close == std::string::npos || close + 2 >= stat->size()) return {};
  return split(stat->substr(close + 2), ' ');
}

int64_t number_at(const std::vector<std::string>& fields, size_t number) {
  const size_t index = number - 3;
  if (index >= fields.size()) return 0;
  return parse_integer(fields[index]).value_or(0);
}

int64_t io_bytes_of(const std::string& folder) {
  const auto text = try_read_file(folder + "/io");
  if (!text) return 0;
  int64_t bytes = 0;
  for (const std::string& line : split(*text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() != 2) continue;
    const std::string& name = words[0];
    if (name == "rchar:" || name == "wchar:" || name == "read_bytes:" ||
        name == "write_bytes:") {
      bytes += parse_integer(words[1]).value_or(0);
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
  const auto wchan = try_read_file(folder + "/wchan");
  if (wchan && !wchan->empty() && std::isdigit((*wchan)[0]) == 0) {
    return std::string(trim(*wchan));
  }
  const auto stack = try_read_file(folder + "/stack");
  return stack ? innermost_function(*stack) : "";
}

std::string with_function(std::string text, const std::string& folder) {
  const std::string function = kernel_function(folder);
  if (!function.empty()) text += " in " + function;
  return text;
}

std::string state_text(char state, const std::string& folder) {
  std::string text = state_name(state);
  if (state == 'D') text += " (state D; a hung file system?)";
  if (state != 'S' && state != 'D') return text;
  return with_function(std::move(text), folder);
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
  return after.cpu_seconds - before.cpu_seconds > kBusyShare * seconds ||
         after.io_bytes > before.io_bytes ||
         after.major_faults > before.major_faults;
}

std::string waiting_text(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto process = find_process(pid);
  if (!process) return "gone";
  std::string text = state_text(process->state, folder);
  std::error_code error;
  int num_named = 0;
  for (std::filesystem::directory_iterator task(folder + "/task", error), end;
       !error && task != end; task.increment(error)) {
    const std::string thread = task->path().filename().string();
    if (thread == std::to_string(pid)) continue;
    const auto fields = stat_fields(task->path().string());
    if (fields.empty() || fields[0] != "D") continue;
    if (++num_named > kMaxThreads) break;
    text += fmt::format(", thread {} {}", thread,
                        state_text('D', task->path().string()));
  }
  return text;
}

}  // namespace lockstep
