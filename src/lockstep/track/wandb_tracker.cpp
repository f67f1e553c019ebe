#include "lockstep/track/wandb_tracker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "lockstep/base/atomic_file.h"
#include "lockstep/error.h"
#include "lockstep/track/media_file.h"

namespace lockstep::track {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsBetweenSamples = 15;

double unix_time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Does all work of a call although a part of it fails.
class FirstError {
 public:
  template <typename Work>
  void attempt(Work work) {
    try {
      work();
    } catch (const IoError&) {
      if (!error_) error_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

std::vector<std::string> open_step_records(const WandbRun& run) {
  try {
    return read_wandb_log(run.open_step());
  } catch (const Error&) {
    return {};  // No step was open.
  }
}

// The records of the log and, behind them, the step that was still open.
std::vector<std::string> all_records(const WandbRun& run) {
  std::vector<std::string> records = read_wandb_log(run.log());
  for (auto& record : open_step_records(run)) {
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace

WandbTracker::WandbTracker(WandbConfig config,
                           const std::optional<KeptRecords>& resumed)
    : config_(std::move(config)) {
  check_wandb_names(config_);
  if (config_.start_time == 0) config_.start_time = unix_time_now();
  last_time_ = config_.start_time;
  const auto before = resumed ? earlier_run() : std::optional<WandbRun>();
  if (!before || !go_on(*before, *resumed)) {
    begin(before ? before->id : config_.run_id.value_or(new_wandb_run_id()));
  }
  open_step_file_ = base::FileDescriptor(
      open(run_.open_step().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
           0644));
  if (!open_step_file_) {
    throw IoError(fmt::format("cannot open {}: {}", run_.open_step().string(),
                              base::errno_text()));
  }
  if (step_) save_open_step();
  if (!config_.state_file.empty()) {
    remember_wandb_run(config_.state_file, run_);
  }
}

std::optional<WandbRun> WandbTracker::earlier_run() {
  const fs::path& file = config_.state_file;
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return std::nullopt;
  const auto run = remembered_wandb_run(file);
  if (!run) {
    note_ =
        fmt::format("{} cannot be read: a new wandb run begins", file.string());
    return std::nullopt;
  }
  if (config_.run_id.value_or(run->id) != run->id) return std::nullopt;
  if (is_copied_wandb_state(file)) {
    note_ = fmt::format(
        "{} belongs to another run folder (this one is a copy): a new wandb "
        "run begins",
        file.string());
    return std::nullopt;
  }
  return run;
}

bool WandbTracker::go_on(const WandbRun& run, const KeptRecords& kept) {
  std::optional<WandbEarlierPart> part;
  const char* trouble = "is damaged";
  try {
    part = keep_wandb_records(all_records(run), kept, config_);
  } catch (const IoError&) {
    trouble = "was not found";
  } catch (const FormatError&) {
    // Something else lies there now.
  }
  if (!part) {
    note_ = fmt::format(
        "the earlier part of the wandb run {} {} at {}: a new part with the "
        "same id begins after step {}",
        run.id, trouble, run.folder.string(), kept.last_step);
    return false;
  }
  run_ = run;
  point_latest_to(run_);
  base::write_file_atomically(run_.log(), wandb_log_bytes(part->records));
  forget_wandb_sync(run_);
  for (const auto& path : part->dropped_media) {
    std::error_code error;
    fs::remove(run_.files() / path, error);
  }
  log_.emplace(run_.log());
  num_records_ = static_cast<int64_t>(part->records.size());
  step_ = std::move(part->open_step);
  earlier_runtime_seconds_ = part->runtime_seconds;
  system_.emplace(run_.folder);
  return true;
}

void WandbTracker::begin(const std::string& id) {
  run_ = make_wandb_run(config_.folder.value_or("."), id, config_.start_time);
  log_.emplace(run_.log());
  system_.emplace(run_.folder);
  append([](int64_t num) { return header_record(num); });
  append([this](int64_t num) {
    return run_record(num, run_.id, config_, config_.start_time);
  });
  append([this](int64_t num) {
    return environment_record(num, run_.id, config_, system_->gpus().models());
  });
}

template <typename MakeRecord>
void WandbTracker::append(MakeRecord make_record) {
  log_->append(make_record(num_records_ + 1));
  ++num_records_;
}

void WandbTracker::note_time(double unix_time) {
  last_time_ = std::max(last_time_, unix_time);
}

double WandbTracker::runtime_at(double unix_time) const {
  return earlier_runtime_seconds_ +
         std::max(0.0, unix_time - config_.start_time);
}

void WandbTracker::add(std::vector<WandbItem> items) {
  // A later value of a name replaces all of an earlier one.
  const std::string& name = items.front().key.front();
  std::erase_if(step_->items, [&name](const WandbItem& item) {
    return item.key.front() == name;
  });
  std::move(items.begin(), items.end(), std::back_inserter(step_->items));
}

void WandbTracker::record(const Record& record) {
  FirstError error;
  note_time(record.unix_time);
  if (step_ && step_->num != record.step) {
    error.attempt([this] { write_step(); });
  }
  if (!step_) step_.emplace(WandbStep{.num = record.step});
  step_->unix_time = record.unix_time;
  step_->runtime_seconds = runtime_at(record.unix_time);
  for (const auto& [name, value] : record.metrics) {
    add({{{name}, wandb_json(value)}});
  }
  for (const auto& image : record.images) {
    error.attempt([&] { add(write_image(run_.files(), record.step, image)); });
  }
  for (const auto& note : record.texts) {
    error.attempt([&] { add(write_text(run_.files(), record.step, note)); });
  }
  error.attempt([this] { save_open_step(); });
  error.rethrow();
}

void WandbTracker::write_step() {
  const int64_t step = step_->num;
  const auto items = recorded_items(*step_);
  // Also when it cannot be written: the next step must not grow behind it.
  step_.reset();
  if (const auto media = media_of(items); !media.empty()) {
    append([&](int64_t num) { return media_record(num, media); });
  }
  append([&](int64_t num) { return summary_record(num, items); });
  append([&](int64_t num) { return history_record(num, step, items); });
}

void WandbTracker::save_open_step() {
  const auto items = recorded_items(*step_);
  const std::string record = history_record(0, step_->num, items);
  const std::string bytes = wandb_log_bytes(std::span(&record, 1));
  const int file = open_step_file_.get();
  if (lseek(file, 0, SEEK_SET) != 0 || !base::write_all(file, bytes) ||
      ftruncate(file, static_cast<off_t>(bytes.size())) != 0) {
    throw IoError(fmt::format("cannot write {}: {}", run_.open_step().string(),
                              base::errno_text()));
  }
}

void WandbTracker::console(const ConsoleText& text) {
  note_time(text.unix_time);
  append([&text](int64_t num) { return console_record(num, text); });
}

void WandbTracker::tick(double unix_time) {
  note_time(unix_time);
  if (unix_time < next_sample_time_) return;
  next_sample_time_ = unix_time + kSecondsBetweenSamples;
  append([this, unix_time](int64_t num) {
    return stats_record(num, unix_time, system_->sample());
  });
}

void WandbTracker::finish(int exit_code) {
  FirstError error;
  if (step_) error.attempt([this] { write_step(); });
  error.attempt([&] {
    const double runtime = runtime_at(last_time_);
    const std::vector<WandbItem> items = {
        {{"_wandb", "runtime"}, std::to_string(static_cast<int64_t>(runtime))},
        {{"_runtime"}, wandb_json(runtime)}};
    append([&](int64_t num) { return summary_record(num, items); });
    append([&](int64_t num) { return exit_record(num, exit_code, runtime); });
    append([](int64_t num) { return final_record(num); });
    append([](int64_t num) { return footer_record(num); });
  });
  std::error_code ignored;
  fs::remove(run_.open_step(), ignored);
  error.rethrow();
}

}  // namespace lockstep::track
