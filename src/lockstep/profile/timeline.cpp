#include "lockstep/profile/timeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep::profile {
namespace {

// Kinds of a GPU's work that hide those behind them.
constexpr std::array kPriority = {
    Kind::kProducts, Kind::kAttention, Kind::kElementwise, Kind::kOther,
    Kind::kCopies,   Kind::kExchange,  Kind::kData};

struct Edge {
  int64_t at = 0;
  Kind kind = Kind::kHost;
  int change = 0;
};

int64_t clipped(int64_t at, const Recording& recording) {
  return std::clamp(at, recording.begin_ns, recording.end_ns);
}

TimeByKind device_time(const Recording& recording) {
  std::vector<Edge> edges;
  TimeByKind time;
  for (const Event& event : recording.events) {
    const bool is_data = !event.is_device && event.name == "lockstep::data";
    if (!event.is_device && !is_data) continue;
    const Kind kind = is_data ? Kind::kData : kind_of_kernel(event.name);
    const int64_t begin = clipped(event.begin_ns, recording);
    const int64_t end = clipped(event.end_ns, recording);
    if (end <= begin) continue;
    if (kind == Kind::kOther) time.unknown[event.name] += end - begin;
    edges.push_back({begin, kind, 1});
    edges.push_back({end, kind, -1});
  }
  std::ranges::sort(edges, {}, &Edge::at);
  std::array<int, kNumKinds> active{};
  int64_t last = recording.begin_ns;
  const auto spend = [&](int64_t until) {
    const auto* const kind =
        std::ranges::find_if(kPriority, [&](Kind candidate) {
          return active.at(static_cast<size_t>(candidate)) > 0;
        });
    const Kind spent = kind == kPriority.end() ? Kind::kHost : *kind;
    time.ns.at(static_cast<size_t>(spent)) += until - last;
    last = until;
  };
  for (const Edge& edge : edges) {
    spend(edge.at);
    active.at(static_cast<size_t>(edge.kind)) += edge.change;
  }
  spend(recording.end_ns);
  return time;
}

// The main thread's operations: nested intervals, walked with a stack.
class HostWalk {
 public:
  explicit HostWalk(const Recording& recording) : recording_(recording) {
    for (const Event& event : recording.events) {
      if (event.is_device || event.thread != recording.main_thread) continue;
      if (event.end_ns > recording.begin_ns &&
          event.begin_ns < recording.end_ns) {
        events_.push_back(&event);
      }
    }
    // An operation comes before those inside of it.
    std::ranges::sort(events_, [](const Event* a, const Event* b) {
      return std::pair(a->begin_ns, -a->end_ns) <
             std::pair(b->begin_ns, -b->end_ns);
    });
    last_ = recording.begin_ns;
    pause_begin_ = recording.begin_ns;
  }

  TimeByKind run() {
    for (const Event* event : events_) {
      const int64_t begin = clipped(event->begin_ns, recording_);
      close_until(begin);
      spend(begin);
      stack_.push_back(event);
    }
    close_until(recording_.end_ns);
    spend(recording_.end_ns);
    return std::move(time_);
  }

 private:
  void close_until(int64_t at) {
    while (!stack_.empty() && stack_.back()->end_ns <= at) {
      const int64_t end = clipped(stack_.back()->end_ns, recording_);
      spend(end);
      if (stack_.size() == 1) pause_begin_ = stack_.back()->begin_ns;
      stack_.pop_back();
    }
  }

  // A collective that the operation before the pause, or the pause, started.
  bool waits_for_ranks(int64_t until) const {
    const auto start =
        std::ranges::lower_bound(recording_.collectives, pause_begin_);
    return start != recording_.collectives.end() && *start <= until;
  }

  // A loader without threads works on the main thread.
  bool is_in_data() const {
    return std::ranges::any_of(stack_, [](const Event* event) {
      return event->name == "lockstep::data";
    });
  }

  void spend(int64_t until) {
    const int64_t span = until - last_;
    if (span <= 0) return;
    Kind kind = Kind::kHost;
    if (stack_.empty()) {
      if (waits_for_ranks(until)) kind = Kind::kExchange;
    } else {
      const std::string& name = stack_.back()->name;
      kind = is_in_data() ? Kind::kData : kind_of_operation(name);
      if (kind == Kind::kOther) time_.unknown[name] += span;
    }
    time_.ns.at(static_cast<size_t>(kind)) += span;
    last_ = until;
  }

  const Recording& recording_;
  std::vector<const Event*> events_;
  std::vector<const Event*> stack_;
  int64_t last_ = 0;
  int64_t pause_begin_ = 0;  // End of the operation before a pause.
  TimeByKind time_;
};

}  // namespace

int64_t TimeByKind::total() const {
  return std::accumulate(ns.begin(), ns.end(), int64_t{0});
}

TimeByKind time_by_kind(const Recording& recording) {
  const bool has_device =
      std::ranges::any_of(recording.events, &Event::is_device);
  return has_device ? device_time(recording) : HostWalk(recording).run();
}

}  // namespace lockstep::profile
