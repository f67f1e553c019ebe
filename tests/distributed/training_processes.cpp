#include "distributed/training_processes.h"

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

std::string proc_file(pid_t pid, const char* name) {
  return base::try_read_file("/proc/" + std::to_string(pid) + "/" + name)
      .value_or("");
}

int64_t start_of(pid_t pid) {
  constexpr size_t kStartTime = 19;  // Field 22 of the file.
  const auto fields = stat_fields(pid);
  if (fields.size() <= kStartTime) return 0;
  return base::parse_integer(fields[kStartTime]).value_or(0);
}

// Processes of the worker whose second word is this one.
std::vector<pid_t> workers_of(const Process& process,
                              const std::string& command) {
  std::vector<pid_t> found;
  for (const pid_t pid : find_marked(process.marker())) {
    const auto words = command_line(pid);
    if (words.size() > 1 && words[0].ends_with("-worker") &&
        words[1] == command) {
      found.push_back(pid);
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> stat_fields(pid_t pid) {
  const std::string text = proc_file(pid, "stat");
  // The name may hold blanks.
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return {"Z"};
  return base::split(text.substr(name_end + 2), ' ');
}

std::vector<std::string> command_line(pid_t pid) {
  return base::split(proc_file(pid, "cmdline"), '\0');
}

std::vector<RankProcess> ranks_of(const Process& process) {
  std::vector<RankProcess> ranks;
  for (const pid_t pid : workers_of(process, "train")) {
    ranks.push_back({.pid = pid, .started = start_of(pid)});
  }
  return ranks;
}

std::vector<pid_t> waiting_spares_of(const Process& process) {
  std::vector<pid_t> spares = spares_of(process);
  std::erase_if(spares, [](pid_t pid) {
    return proc_file(pid, "comm") != "lockstep-spare\n";
  });
  return spares;
}

std::vector<pid_t> spares_of(const Process& process) {
  return workers_of(process, "spare");
}

}  // namespace lockstep::testing
