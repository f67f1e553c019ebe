#include "lockstep/base/training_status.h"

#include <algorithm>
#include <cstddef>

#include "lockstep/base/clock.h"
#include "lockstep/base/status.h"
#include "lockstep/base/status_memory.h"

namespace lockstep::base {
namespace {

static_assert(TrainingPage::kOffset >= offsetof(StatusPage, reserved));
std::atomic<int64_t>& typical_ns(TrainingPage& page, Activity activity) {
  return page.typical_ns.at(static_cast<size_t>(activity));
}

int64_t typical_ns(const TrainingPage& page, Activity activity) {
  const auto index = static_cast<size_t>(activity);
  return index < page.typical_ns.size() ? page.typical_ns[index].load() : 0;
}

std::optional<double> p99_seconds(const TrainingPage& page, Activity activity) {
  const auto index = static_cast<size_t>(activity);
  return index < page.durations.size() ? page.durations[index].p99_seconds()
                                       : std::nullopt;
}

// Follows a change within a few values, and one outlier only by half.
void note_duration(std::atomic<int64_t>& typical, int64_t duration) {
  const int64_t before = typical;
  typical = before == 0 ? duration : (before + duration) / 2;
}

}  // namespace

std::string activity_name(Activity activity) {
  switch (activity) {
    case Activity::kNone: return "nothing";
    case Activity::kStep: return "a step";
    case Activity::kValidation: return "a validation batch";
    case Activity::kSampling: return "a batch of samples";
    case Activity::kScoring: return "a batch of scored images";
    case Activity::kSaving: return "a checkpoint";
    case Activity::kFinishing: return "the end of the run";
  }
  return "unknown";
}

TrainingStatusReader::TrainingStatusReader(int status_fd)
    : page_(map_status_part<TrainingPage>(status_fd)) {}

std::optional<TrainingStatus> TrainingStatusReader::read() const {
  return page_ == nullptr ? std::nullopt : read_training_page(*page_);
}

std::optional<TrainingStatus> read_training_page(const TrainingPage& page) {
  if (page.version != TrainingPage::kVersion) return std::nullopt;
  const auto activity = static_cast<Activity>(page.activity.load());
  return TrainingStatus{
      .activity = activity,
      .activity_seconds =
          seconds_between(page.activity_begin_ns, monotonic_ns()),
      .typical_seconds = seconds_between(0, typical_ns(page, activity)),
      .saving_seconds = seconds_between(0, typical_ns(page, Activity::kSaving)),
      .num_steps = page.num_steps,
      .saved_step = page.saved_step,
      .times = {.num_steps = page.timed_steps,
                .data = seconds_between(0, page.data_ns),
                .compute = seconds_between(0, page.compute_ns),
                .exchange = seconds_between(0, page.exchange_ns),
                .other = seconds_between(0, page.other_ns)},
      .activity_begin_ns = page.activity_begin_ns,
      .activity_p99_seconds = p99_seconds(page, activity)};
}

TrainingStatusWriter::TrainingStatusWriter()
    : page_(std::make_shared<TrainingPage>()) {}

TrainingStatusWriter TrainingStatusWriter::from_environment(
    const Environment& environment) {
  TrainingStatusWriter writer;
  const auto fd = find_integer(environment, "LOCKSTEP_STATUS_FD");
  if (!fd || !is_status_memory(static_cast<int>(*fd))) return writer;
  if (auto page = map_status_part<TrainingPage>(static_cast<int>(*fd))) {
    writer.page_ = std::move(page);
  }
  return writer;
}

void TrainingStatusWriter::start(int64_t num_steps,
                                 std::optional<int64_t> saved_step) {
  page_->num_steps = num_steps;
  page_->saved_step = saved_step.value_or(-1);
  page_->activity = static_cast<int32_t>(Activity::kNone);
  page_->activity_begin_ns = monotonic_ns();
  page_->version = TrainingPage::kVersion;
}

void TrainingStatusWriter::go_on(int64_t num_steps) {
  const bool is_known = page_->version == TrainingPage::kVersion;
  start(num_steps,
        is_known ? std::optional(page_->saved_step.load()) : std::nullopt);
}

void TrainingStatusWriter::begin(Activity activity) {
  const int64_t now = monotonic_ns();
  const auto before = static_cast<Activity>(page_->activity.load());
  if (before != Activity::kNone) {
    page_->durations.at(static_cast<size_t>(before))
        .add(now - page_->activity_begin_ns);
  }
  // A checkpoint is complete later: note_saved().
  if (before != Activity::kNone && before != Activity::kSaving) {
    note_duration(typical_ns(*page_, before), now - page_->activity_begin_ns);
  }
  page_->activity_begin_ns = now;
  page_->activity = static_cast<int32_t>(activity);
}

void TrainingStatusWriter::set_num_steps(int64_t num_steps) {
  page_->num_steps = num_steps;
}

double TrainingStatusWriter::activity_seconds() const {
  return seconds_between(page_->activity_begin_ns, monotonic_ns());
}

void TrainingStatusWriter::start_save() {
  page_->save_begin_ns = monotonic_ns();
}

void TrainingStatusWriter::add_times(const StepSeconds& times) {
  // A few steps alone say little on a busy machine: earlier ones fade out.
  const auto add = [](std::atomic<int64_t>& sum, int64_t value) {
    sum = sum - sum / 4 + value;  // Also of numbers below 4.
  };
  const auto nanoseconds = [](double seconds) {
    return static_cast<int64_t>(seconds * static_cast<double>(kNsPerSecond));
  };
  add(page_->data_ns, nanoseconds(times.data));
  add(page_->compute_ns, nanoseconds(times.compute));
  add(page_->exchange_ns, nanoseconds(times.exchange));
  add(page_->other_ns, nanoseconds(times.other));
  add(page_->timed_steps, times.num_steps);
}

void TrainingStatusWriter::note_saved(int64_t step) {
  note_duration(typical_ns(*page_, Activity::kSaving),
                monotonic_ns() - page_->save_begin_ns);
  page_->saved_step = std::max<int64_t>(page_->saved_step, step);
}

}  // namespace lockstep::base
