// The console of a training: messages, a progress bar or lines, a log file.
//
// It prints nothing itself: the program gives it two functions to write with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/clock.h"
#include "lockstep/track/log_file.h"
#include "lockstep/track/progress.h"

namespace lockstep::track {

enum class Level { kInfo, kWarning, kError };

enum class ProgressDisplay {
  kAuto,   // a bar on a terminal, lines elsewhere
  kBar,    // 80 columns where there is no terminal
  kLines,  // for files and pipes
  kNone,   // only the log file gets lines
};

struct ConsoleConfig {
  int rank = 0;
  // False on all ranks but one: they show neither progress nor information, and
  // print warnings and errors with their rank.
  bool speaks = true;
  ProgressDisplay progress = ProgressDisplay::kAuto;
};

// Where the text goes. The functions are called by one thread at a time, with
// whole texts that should appear at once; they must neither throw nor call the
// console.
struct ConsoleOutput {
  std::function<void(std::string_view)> out = [](std::string_view) {};
  std::function<void(std::string_view)> err = [](std::string_view) {};
  // The width of the terminal behind `out`; 0: not a terminal. See
  // base/terminal.h.
  std::function<int()> columns = [] { return 0; };
  bool is_utf8 = false;  // the terminal shows block characters
  std::function<int64_t()> now_ns = base::monotonic_ns;
  std::function<int64_t()> wall_seconds = base::unix_seconds;
};

// Thread-safe. A failing log file never ends a training: it is reported once.
class Console {
 public:
  Console(ConsoleConfig config, ConsoleOutput output);
  ~Console();  // Ends the line of a visible bar.
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // From here on the file gets every message and progress line as "2026-03-01
  // 09:15:02 - INFO - text"; the first 64 KiB of earlier messages follow at
  // once. Does nothing where `speaks` is false. Throws IoError.
  void open_log(const std::filesystem::path& path);

  // From here on all that goes to the log file goes there too, as whole lines
  // as the console shows them. Called by one thread at a time; it must not call
  // the console. An empty one ends it.
  using Listener = std::function<void(Level level, const std::string& lines)>;
  void listen(Listener listener);

  // Texts may have several lines. A visible bar stays below them.
  void info(std::string_view text) { say(Level::kInfo, text); }
  void warn(std::string_view text) { say(Level::kWarning, text); }
  void error(std::string_view text) { say(Level::kError, text); }

  // To the log file only: for the error that ends the program, which prints it
  // itself.
  void log_error(std::string_view text);

  // This process goes on as another rank.
  void set_rank(int rank, bool speaks);

  // Call it at every step: keeps the bar up to date, drawn at most 10 times a
  // second and when its label changes. Where progress is shown as lines, it
  // prints one when is_line_due().
  void progress(const ProgressState& state);

  // Whether progress() will print a line: for the first call with "train", then
  // a minute after the last line of progress.
  bool is_line_due(std::string_view label) const;

  // Call it as often as lines are wanted: goes to the log file, and to the
  // console where progress is shown as lines.
  void progress_line(const ProgressState& state);

  // Draws the bar's last state and ends its line.
  void finish_progress();

 private:
  void say(Level level, std::string_view text);
  std::string drawn_bar();
  // Calls one of the output's functions, with no bar in the way.
  void write_above_bar(const std::function<void(std::string_view)>& write,
                       const std::string& lines);
  void log(Level level, std::string_view text);
  void append_to_log(std::string_view line);
  bool needs_line(std::string_view label) const;
  void show_line(const ProgressState& state);

  const ConsoleOutput output_;

  mutable std::mutex mutex_;  // guards what follows
  ConsoleConfig config_;
  ProgressDisplay display_;           // never kAuto
  std::optional<ProgressState> bar_;  // its last state, while there is a bar
  int64_t drawn_ns_ = 0;
  int64_t line_ns_ = 0;       // of the last progress line, or the beginning
  bool has_trained_ = false;  // a line of "train" was shown
  std::optional<LogFile> log_file_;
  std::string waiting_for_log_;
  Listener listener_;
  bool has_log_failed_ = false;
};

}  // namespace lockstep::track
