#include "lockstep/track/console.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/terminal.h"

namespace lockstep::track {
namespace {

constexpr int64_t kRedrawNs = 100'000'000;
constexpr int64_t kLineNs = 60'000'000'000;
constexpr size_t kWaitingBytes = size_t{64} * 1024;

ProgressDisplay choose_display(const ConsoleConfig& config,
                               const ConsoleOutput& output) {
  if (!config.speaks) return ProgressDisplay::kNone;
  if (config.progress != ProgressDisplay::kAuto) return config.progress;
  return output.columns() > 0 ? ProgressDisplay::kBar : ProgressDisplay::kLines;
}

std::string_view log_name(Level level) {
  switch (level) {
    case Level::kInfo: return "INFO";
    case Level::kWarning: return "WARNING";
    case Level::kError: return "ERROR";
  }
  return "";
}

std::string_view console_prefix(Level level) {
  switch (level) {
    case Level::kInfo: return "";
    case Level::kWarning: return "warning: ";
    case Level::kError: return "error: ";
  }
  return "";
}

}  // namespace

Console::Console(ConsoleConfig config, ConsoleOutput output)
    : output_(std::move(output)),
      config_(config),
      display_(choose_display(config_, output_)),
      line_ns_(output_.now_ns()) {}

Console::~Console() { finish_progress(); }

void Console::open_log(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  if (!config_.speaks) return;
  log_file_.emplace(path);
  append_to_log(std::exchange(waiting_for_log_, {}));
}

void Console::listen(Listener listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void Console::say(Level level, std::string_view said) {
  const std::lock_guard lock(mutex_);
  if (said.ends_with('\n')) said.remove_suffix(1);
  // Names and texts of files are among it.
  const std::string text = base::printable_text(said);
  if (!config_.speaks) {
    if (level == Level::kInfo) return;
    output_.err(fmt::format("rank {}: {}{}\n", config_.rank,
                            console_prefix(level), text));
    return;
  }
  write_above_bar(level == Level::kInfo ? output_.out : output_.err,
                  fmt::format("{}{}\n", console_prefix(level), text));
  log(level, text);
}

void Console::log_error(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (config_.speaks) log(Level::kError, text);
}

void Console::set_rank(int rank, bool speaks) {
  const std::lock_guard lock(mutex_);
  if (!speaks && bar_) {
    output_.out(drawn_bar() + "\n");
    bar_.reset();
  }
  config_.rank = rank;
  config_.speaks = speaks;
  display_ = choose_display(config_, output_);
}

void Console::progress(const ProgressState& state) {
  const std::lock_guard lock(mutex_);
  if (needs_line(state.label)) show_line(state);
  if (display_ != ProgressDisplay::kBar) return;
  const bool is_due = !bar_ || bar_->label != state.label ||
                      output_.now_ns() - drawn_ns_ >= kRedrawNs;
  bar_ = state;
  if (is_due) output_.out(drawn_bar());
}

void Console::progress_line(const ProgressState& state) {
  const std::lock_guard lock(mutex_);
  if (!config_.speaks) return;
  if (display_ == ProgressDisplay::kLines) show_line(state);
  log(Level::kInfo, line_text(state));
}

bool Console::is_line_due(std::string_view label) const {
  const std::lock_guard lock(mutex_);
  return needs_line(label);
}

bool Console::needs_line(std::string_view label) const {
  if (display_ != ProgressDisplay::kLines) return false;
  const bool is_first = label == kTrainLabel && !has_trained_;
  return is_first || output_.now_ns() - line_ns_ >= kLineNs;
}

void Console::show_line(const ProgressState& state) {
  output_.out(line_text(state) + "\n");
  line_ns_ = output_.now_ns();
  has_trained_ |= state.label == kTrainLabel;
}

void Console::finish_progress() {
  const std::lock_guard lock(mutex_);
  if (!bar_) return;
  output_.out(drawn_bar() + "\n");
  bar_.reset();
}

// It ends with \r, because the launcher hands on what it reads up to there, and
// begins with one, because the terminal may have shown a "^C" in between.
std::string Console::drawn_bar() {
  BarStyle style{.is_utf8 = output_.is_utf8};
  if (const int columns = output_.columns(); columns > 0) {
    style.columns = columns;
  }
  drawn_ns_ = output_.now_ns();
  return fmt::format("\r{}{}\r", bar_text(*bar_, style), base::kEraseToEnd);
}

void Console::write_above_bar(
    const std::function<void(std::string_view)>& write,
    const std::string& lines) {
  if (bar_) output_.out(fmt::format("\r{}\r", base::kEraseToEnd));
  write(lines);
  if (bar_) output_.out(drawn_bar());
}

void Console::log(Level level, std::string_view text) {
  if (listener_) {
    listener_(level, fmt::format("{}{}\n", console_prefix(level), text));
  }
  const std::string time = base::replace_all(
      base::local_timestamp(output_.wall_seconds()), "_", " ");
  const std::string line =
      fmt::format("{} - {} - {}\n", time, log_name(level), text);
  if (log_file_) {
    append_to_log(line);
  } else if (waiting_for_log_.size() + line.size() <= kWaitingBytes) {
    waiting_for_log_ += line;
  }
}

void Console::append_to_log(std::string_view line) {
  const auto failure = log_file_->append(line);
  if (!failure || std::exchange(has_log_failed_, true)) return;
  write_above_bar(
      output_.err,
      fmt::format("warning: the log file {} cannot be written: {}; the "
                  "training goes on, lines are missing there\n",
                  log_file_->path().string(), *failure));
}

}  // namespace lockstep::track
