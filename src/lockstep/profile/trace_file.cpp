#include "lockstep/profile/trace_file.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"

namespace lockstep::profile {
namespace {

constexpr std::string_view kHead =
    "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
constexpr std::string_view kTail = "\n]}\n";
// Streams come behind the threads.
constexpr int kFirstStream = 1000;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

// Microseconds with all digits of the nanoseconds.
std::string microseconds(int64_t ns) {
  const bool is_negative = ns < 0;
  const int64_t size = is_negative ? -ns : ns;
  return fmt::format("{}{}.{:03}", is_negative ? "-" : "", size / 1000,
                     size % 1000);
}

std::string name_event(const char* what, int rank, int thread,
                       const std::string& name) {
  return fmt::format(
      R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})",
      what, rank, thread, quoted(name));
}

// Small numbers instead of those of the system.
class Threads {
 public:
  explicit Threads(uint64_t main_thread) { numbers_[{false, main_thread}] = 0; }

  int number(const Event& event) {
    const auto [entry, is_new] =
        numbers_.try_emplace(std::pair(event.is_device, event.thread), next_);
    if (is_new) ++next_;
    return event.is_device ? kFirstStream + entry->second : entry->second;
  }

  std::string names(int rank) const {
    std::string text;
    for (const auto& [key, number] : numbers_) {
      const auto& [is_device, thread] = key;
      std::string name = is_device ? fmt::format("GPU stream {}", thread)
                                   : fmt::format("thread {}", number);
      if (number == 0) name = "training loop";
      text +=
          ",\n" + name_event("thread_name", rank,
                             is_device ? kFirstStream + number : number, name);
    }
    return text;
  }

 private:
  std::map<std::pair<bool, uint64_t>, int> numbers_;
  int next_ = 1;
};

}  // namespace

std::string trace_text(const Recording& recording, int rank, int64_t zero_ns) {
  std::string text(kHead);
  text += name_event("process_name", rank, 0, fmt::format("rank {}", rank));
  Threads threads(recording.main_thread);
  for (const Event& event : recording.events) {
    const Kind kind = event.is_device ? kind_of_kernel(event.name)
                                      : kind_of_operation(event.name);
    text += fmt::format(
        ",\n"
        R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{}}})",
        quoted(event.name), kind_name(kind), rank, threads.number(event),
        microseconds(event.begin_ns - zero_ns),
        microseconds(event.end_ns - event.begin_ns));
  }
  for (const int64_t at : recording.collectives) {
    text += fmt::format(
        ",\n"
        R"({{"ph":"i","s":"t","name":"collective starts","cat":"exchange","pid":{},"tid":0,"ts":{}}})",
        rank, microseconds(at - zero_ns));
  }
  text += threads.names(rank);
  text += kTail;
  return text;
}

int merge_traces(std::span<const std::filesystem::path> files,
                 const std::filesystem::path& merged) {
  std::string text(kHead);
  int count = 0;
  for (const std::filesystem::path& file : files) {
    const auto part = base::try_read_file(file);
    if (!part || !part->starts_with(kHead) || !part->ends_with(kTail)) continue;
    if (count++ > 0) text += ",\n";
    text += std::string_view(*part).substr(
        kHead.size(), part->size() - kHead.size() - kTail.size());
  }
  text += kTail;
  base::write_file_atomically(merged, text);
  return count;
}

}  // namespace lockstep::profile
