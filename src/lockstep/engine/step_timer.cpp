#include "lockstep/engine/step_timer.h"

#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/tensor/device_event.h"

namespace lockstep::engine {
namespace {

double seconds(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

using Event = tensor::DeviceEvent;

}  // namespace

class StepEvents {
 public:
  void mark() { marks_.push_back(tensor::record_event()); }
  // The exchange of a micro-batch's last gradients begins.
  void mark_exchange() {
    unused_.push_back(std::exchange(exchange_begin_, tensor::record_event()));
  }
  void end_forward() {
    mark();
    // A vote or a buffer broadcast, not gradients.
    unused_.push_back(std::exchange(exchange_begin_, {}));
  }
  void end_backward() {
    mark();
    exchanges_.push_back(std::exchange(exchange_begin_, {}));
  }

  // The device has finished the last backward pass.
  bool is_backward_done() const {
    return marks_.size() > 1 && tensor::is_done(marks_[marks_.size() - 2]);
  }

  // No value for a step that was not completed.
  std::optional<track::StepTimes> times() const {
    // Per micro-batch: begin, end of forward and of backward; then the step's
    // end.
    if (exchanges_.empty() || marks_.size() != 3 * exchanges_.size() + 1) {
      return {};
    }
    track::StepTimes times;
    for (size_t i = 0; i < exchanges_.size(); ++i) {
      const size_t at = 3 * i;
      const double backward =
          tensor::seconds_between(marks_[at + 1], marks_[at + 2]);
      const double exchange =
          exchanges_[i] ? tensor::seconds_between(exchanges_[i], marks_[at + 2])
                        : 0;
      times.forward += tensor::seconds_between(marks_[at], marks_[at + 1]);
      times.exchange += exchange;
      times.backward += backward - exchange;
    }
    times.optimizer =
        tensor::seconds_between(marks_[marks_.size() - 2], marks_.back());
    return times;
  }

 private:
  std::vector<Event> marks_;
  Event exchange_begin_;  // Null: none.
  std::vector<Event> exchanges_;
  std::vector<Event> unused_;  // A graph records them as well.
};

StepTimer::StepTimer(c10::Device device, const base::StatusWriter& status)
    : status_(status), is_device_(!device.is_cpu()) {
  if (!is_device_) return;
  status_.observe_collectives([this] {
    if (events_ != nullptr) events_->mark_exchange();
  });
}

StepTimer::~StepTimer() {
  if (is_device_) status_.observe_collectives({});
}

std::shared_ptr<StepEvents> StepTimer::start_events() {
  is_replayed_ = false;
  if (is_device_) events_ = std::make_shared<StepEvents>();
  return events_;
}

void StepTimer::use_events(std::shared_ptr<StepEvents> events) {
  events_ = std::move(events);
  is_replayed_ = true;
}

double StepTimer::lap() {
  const int64_t now = base::monotonic_ns();
  const double time = seconds(last_ns_, now);
  last_ns_ = now;
  return time;
}

void StepTimer::begin_step() {
  if (last_ns_ == 0) last_ns_ = base::monotonic_ns();
  times_.other += lap();
  start_events();
}

void StepTimer::data_end() { times_.data += lap(); }

void StepTimer::forward_begin() {
  if (is_device_) events_->mark();
}

void StepTimer::forward_end() {
  if (is_device_) {
    events_->end_forward();
  } else {
    times_.forward += lap();
  }
}

void StepTimer::backward_end() {
  if (is_device_) {
    events_->end_backward();
    return;
  }
  const int64_t begin = last_ns_;
  const double time = lap();
  // Excludes collectives before this backward.
  const int64_t sent = status_.last_collective_ns();
  const double exchange = sent > begin ? seconds(sent, last_ns_) : 0;
  times_.exchange += exchange;
  times_.backward += time - exchange;
}

void StepTimer::update_end() {
  if (is_device_) {
    events_->mark();
  } else {
    times_.optimizer += lap();
  }
}

void StepTimer::end_step() {
  ++times_.steps;
  if (!is_device_) return;
  lap();  // The clock shows when work was queued.
  // A device that is behind the host still has the last pass to do.
  if (!is_replayed_ && events_->is_backward_done()) ++times_.launch_bound_steps;
}

void StepTimer::wait_end() {
  if (is_device_) lap();
}

track::StepTimes StepTimer::take() {
  if (events_ != nullptr) {
    if (const auto one = events_->times()) {
      const auto scale = static_cast<double>(times_.steps);
      times_.forward = one->forward * scale;
      times_.backward = one->backward * scale;
      times_.exchange = one->exchange * scale;
      times_.optimizer = one->optimizer * scale;
    }
    events_.reset();
  }
  return std::exchange(times_, {});
}

}  // namespace lockstep::engine
