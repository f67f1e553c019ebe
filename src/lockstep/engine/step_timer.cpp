#include "lockstep/engine/step_timer.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/tensor/device.h"

namespace lockstep::engine {
namespace {

double seconds(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

}  // namespace

// Events of the current or last step on the device's stream.
class StepTimer::DeviceMarks {
 public:
  explicit DeviceMarks(c10::Device device)
      : device_(device), guard_(device.type()) {}

  void begin() {
    marks_.clear();
    exchanges_.clear();
  }
  void mark() { marks_.push_back(record()); }
  // The exchange of a micro-batch's last gradients begins.
  void mark_exchange() { exchange_begin_ = record(); }
  void end_forward() {
    mark();
    exchange_begin_.reset();  // A vote or a buffer broadcast, not gradients.
  }
  void end_backward() {
    mark();
    exchanges_.push_back(std::exchange(exchange_begin_, {}));
  }

  // Scales the times of one step to all steps since the last call.
  void add_to(track::StepTimes& times) {
    // Per micro-batch: data, forward and backward end; then the step's end.
    if (!exchanges_.empty() && marks_.size() == 3 * exchanges_.size() + 1) {
      marks_.back().synchronize();
      track::StepTimes one;
      for (size_t i = 0; i < exchanges_.size(); ++i) {
        const size_t at = 3 * i;
        const double backward = between(marks_[at + 1], marks_[at + 2]);
        const double exchange =
            exchanges_[i] ? between(*exchanges_[i], marks_[at + 2]) : 0;
        one.forward += between(marks_[at], marks_[at + 1]);
        one.exchange += exchange;
        one.backward += backward - exchange;
      }
      one.optimizer = between(marks_[marks_.size() - 2], marks_.back());
      const auto scale = static_cast<double>(times.steps);
      times.forward = one.forward * scale;
      times.backward = one.backward * scale;
      times.exchange = one.exchange * scale;
      times.optimizer = one.optimizer * scale;
    }
    begin();
  }

 private:
  c10::Event record() {
    c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    event.record(guard_.getStream(device_));
    return event;
  }
  static double between(const c10::Event& from, const c10::Event& to) {
    return from.elapsedTime(to) * 1e-3;
  }

  c10::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  std::vector<c10::Event> marks_;
  std::optional<c10::Event> exchange_begin_;
  std::vector<std::optional<c10::Event>> exchanges_;
};

StepTimer::StepTimer(c10::Device device, const base::StatusWriter& status)
    : status_(status) {
  if (device.is_cpu()) return;
  device_ = std::make_unique<DeviceMarks>(device);
  status_.observe_collectives(
      [marks = device_.get()] { marks->mark_exchange(); });
}

StepTimer::~StepTimer() {
  if (device_ != nullptr) status_.observe_collectives({});
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
  if (device_ != nullptr) device_->begin();
}

void StepTimer::data_end() {
  times_.data += lap();
  if (device_ != nullptr) device_->mark();
}

void StepTimer::forward_end() {
  const double time = lap();
  if (device_ != nullptr) {
    device_->end_forward();
  } else {
    times_.forward += time;
  }
}

void StepTimer::backward_end() {
  const int64_t begin = last_ns_;
  const double time = lap();
  if (device_ != nullptr) {
    device_->end_backward();
    return;
  }
  // Excludes collectives before this backward.
  const int64_t sent = status_.last_collective_ns();
  const double exchange = sent > begin ? seconds(sent, last_ns_) : 0;
  times_.exchange += exchange;
  times_.backward += time - exchange;
}

void StepTimer::end_step() {
  const double time = lap();
  ++times_.steps;
  if (device_ != nullptr) {
    device_->mark();
  } else {
    times_.optimizer += time;
  }
}

track::StepTimes StepTimer::take() {
  if (device_ != nullptr) device_->add_to(times_);
  return std::exchange(times_, {});
}

}  // namespace lockstep::engine
