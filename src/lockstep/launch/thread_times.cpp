#include "lockstep/launch/thread_times.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

// A rank that never gets a CPU is judged in the end, ten times as late.
constexpr double kMostStarved = 0.9;

bool is_runnable(const std::string& thread) {
  const auto stat = base::try_read_file(thread + "/stat");
  if (!stat) return false;
  const auto close = stat->rfind(')');
  return close != std::string::npos && close + 2 < stat->size() &&
         (*stat)[close + 2] == 'R';
}

}  // namespace

ThreadTimes thread_times_of(pid_t pid) {
  ThreadTimes result;
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  for (std::filesystem::directory_iterator task(folder, error), end;
       !error && task != end; task.increment(error)) {
    const std::string path = task->path().string();
    const auto text = base::try_read_file(path + "/schedstat");
    if (!text) continue;
    const auto words = base::split(base::trim(*text), ' ');
    if (words.size() != 3) continue;
    const auto id = base::parse_integer(task->path().filename().string());
    result[static_cast<pid_t>(id.value_or(0))] = {
        .run_ns = base::parse_integer(words[0]).value_or(0),
        .delay_ns = base::parse_integer(words[1]).value_or(0),
        .num_slices = base::parse_integer(words[2]).value_or(0),
        .is_runnable = is_runnable(path)};
  }
  return result;
}

SchedulingSeconds scheduling_between(const ThreadTimes& before,
                                     const ThreadTimes& after, double seconds) {
  SchedulingSeconds result;
  for (const auto& [id, now] : after) {
    const auto found = before.find(id);
    const ThreadTime then =
        found == before.end() ? ThreadTime{} : found->second;
    result.run += base::seconds_between(then.run_ns, now.run_ns);
    // The kernel adds a delay when it is over.
    const bool still_waits = found != before.end() && now.is_runnable &&
                             now.num_slices == then.num_slices &&
                             now.run_ns == then.run_ns;
    result.starved += still_waits
                          ? seconds
                          : base::seconds_between(then.delay_ns, now.delay_ns);
  }
  result.starved = std::min(result.starved, kMostStarved * seconds);
  return result;
}

}  // namespace lockstep::launch
