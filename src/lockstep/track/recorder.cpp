#include "lockstep/track/recorder.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "lockstep/base/signal_mask.h"

namespace lockstep::track {
namespace {

using Item = std::variant<Record, ConsoleText>;

double unix_time() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

size_t size_of(const Record& record) {
  size_t bytes = sizeof(Record);
  for (const auto& [name, value] : record.metrics) {
    bytes += sizeof(value) + sizeof(name) + name.size();
  }
  for (const ImageRecord& image : record.images) bytes += image.png.size();
  for (const TextNote& note : record.texts) bytes += note.text.size();
  for (const NamedFile& file : record.files) bytes += file.bytes.size();
  return bytes;
}

size_t size_of(const ConsoleText& text) {
  return sizeof(ConsoleText) + text.text.size();
}

// A tracker and its failures.
struct Target {
  std::unique_ptr<Tracker> tracker;
  int64_t num_lost = 0;
  std::optional<std::chrono::steady_clock::time_point> reported_at = {};
};

}  // namespace

struct Recorder::Impl {
  void push(Item item) {
    const size_t bytes =
        std::visit([](const auto& part) { return size_of(part); }, item);
    const std::lock_guard lock(mutex);
    if (is_ending) return;
    if (waiting_bytes + bytes > config.max_waiting_bytes) {
      ++num_dropped;
      return;
    }
    waiting_bytes += bytes;
    waiting.push_back(std::move(item));
    ++num_pushed;
    wake.notify_one();
  }

  void wait() {
    std::unique_lock lock(mutex);
    all_written.wait(lock,
                     [&, last = num_pushed] { return num_written >= last; });
  }

  bool wait_for(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    return all_written.wait_for(
        lock, limit, [&, last = num_pushed] { return num_written >= last; });
  }

  void run() {
    using Clock = std::chrono::steady_clock;
    auto next_tick = Clock::now() + config.tick;
    while (true) {
      std::vector<Item> items;
      bool is_last = false;
      {
        std::unique_lock lock(mutex);
        wake.wait_until(lock, next_tick, [&] {
          return !waiting.empty() || is_ending || num_dropped > 0;
        });
        items.swap(waiting);
        waiting_bytes = 0;
        is_last = is_ending;
      }
      for (const Item& item : items) tell(item);
      note_written(std::ssize(items));
      report_dropped();
      if (is_last) break;
      if (Clock::now() >= next_tick) {
        for (Target& target : trackers) {
          try_to(target, [&] { target.tracker->tick(unix_time()); });
        }
        next_tick = Clock::now() + config.tick;
      }
    }
    for (Target& target : trackers) {
      if (exit_code)
        try_to(target, [&] { target.tracker->finish(*exit_code); });
      report_lost(target);
    }
  }

  void note_written(int64_t count) {
    const std::lock_guard lock(mutex);
    num_written += count;
    all_written.notify_all();
  }

  void tell(const Item& item) {
    for (Target& target : trackers) {
      if (const auto* record = std::get_if<Record>(&item)) {
        if (!try_to(target, [&] { target.tracker->record(*record); })) {
          ++target.num_lost;
        }
      } else {
        try_to(target,
               [&] { target.tracker->console(std::get<ConsoleText>(item)); });
      }
    }
  }

  // False when it failed, which is reported now and then.
  template <typename Call>
  bool try_to(Target& target, const Call& call) {
    try {
      call();
      return true;
    } catch (const std::exception& error) {
      const auto now = std::chrono::steady_clock::now();
      if (!target.reported_at ||
          now - *target.reported_at > config.report_interval) {
        target.reported_at = now;
        report(fmt::format("{}: {}; training goes on", target.tracker->name(),
                           error.what()));
      }
      return false;
    }
  }

  void report_lost(const Target& target) {
    if (target.num_lost == 0) return;
    report(fmt::format("{}: {} records could not be written",
                       target.tracker->name(), target.num_lost));
  }

  void report_dropped() {
    int64_t dropped = 0;
    {
      const std::lock_guard lock(mutex);
      std::swap(dropped, num_dropped);
    }
    if (dropped == 0) return;
    report(
        fmt::format("{} records were dropped, because the disk is too slow to "
                    "write them; training goes on",
                    dropped));
  }

  void report(const std::string& problem) {
    if (config.on_problem) config.on_problem(problem);
  }

  void end(std::optional<int> code) {
    {
      const std::lock_guard lock(mutex);
      if (is_ending) return;
      is_ending = true;
      exit_code = code;
      wake.notify_one();
    }
    thread.join();
  }

  RecorderConfig config;
  std::vector<Target> trackers;  // Used by the thread only.

  std::mutex mutex;  // guards what follows, never while a tracker is called
  std::condition_variable wake;
  std::condition_variable all_written;
  std::vector<Item> waiting;
  size_t waiting_bytes = 0;
  int64_t num_pushed = 0;
  int64_t num_written = 0;
  int64_t num_dropped = 0;
  bool is_ending = false;
  std::optional<int> exit_code;

  std::thread thread;
};

Recorder::Recorder(RecorderConfig config,
                   std::vector<std::unique_ptr<Tracker>> trackers)
    : impl_(std::make_unique<Impl>()) {
  impl_->config = std::move(config);
  for (auto& tracker : trackers) {
    impl_->trackers.push_back({.tracker = std::move(tracker)});
  }
  const base::AllSignalsBlocked for_the_thread;
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Recorder::~Recorder() { impl_->end(std::nullopt); }

void Recorder::record(Record record) {
  record.unix_time = unix_time();
  impl_->push(std::move(record));
}

void Recorder::console(ConsoleText text) {
  text.unix_time = unix_time();
  impl_->push(std::move(text));
}

void Recorder::wait() { impl_->wait(); }

bool Recorder::wait_for(std::chrono::milliseconds limit) {
  return impl_->wait_for(limit);
}

void Recorder::finish(int exit_code) { impl_->end(exit_code); }

}  // namespace lockstep::track
