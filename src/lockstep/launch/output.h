// The path of a worker's output: pipe, lines, console and log files.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/launch/console_stream.h"
#include "lockstep/launch/error_lines.h"
#include "lockstep/launch/line_splitter.h"
#include "lockstep/launch/log_file.h"

namespace lockstep::launch {

// Where the lines of one stream go.
struct OutputTarget {
  ConsoleStream* console = nullptr;  // not owned; nullptr: not shown
  std::string prefix;                // of lines on the console
  std::string nccl_prefix;       // of NCCL's own lines when there is no prefix
  ErrorLines* errors = nullptr;  // not owned; nullptr: none is looked for
  int rank = 0;                  // for `errors`
  std::unique_ptr<WorkerLogFile> log;  // nullptr: no log file
  std::vector<std::string> filters;
  WorkerLogFile* filtered =
      nullptr;                  // not owned; lines with one of the filters
  std::string filtered_prefix;  // of lines there
};

// "[rank3]:", which NCCL's own lines get.
std::string nccl_prefix(int rank);

// Reads one pipe. Whole lines are handed on, so that lines of two workers
// never mix, and nothing is dropped.
class OutputStream {
 public:
  // The last lines kept for the failure report; of a progress bar only the
  // last frame.
  static constexpr size_t kTailLines = 20;

  // Makes the descriptor non-blocking.
  OutputStream(base::FileDescriptor pipe, OutputTarget target);

  int fd() const { return pipe_.get(); }
  bool is_open() const { return bool(pipe_); }
  // Reads what is there, one buffer at most. False when nothing was there.
  bool pump();
  // All that is there, as what a worker that has ended said last.
  void pump_all() {
    while (pump()) {
    }
  }
  // Hands out a last line without end; nothing is read after it.
  void close();
  // The worker goes on as another rank, with this prefix of lines that have
  // one.
  void set_rank(int rank, const std::string& prefix);

  // True while the console does not take what is already read.
  bool is_held_up() const;
  const std::deque<std::string>& tail() const { return tail_; }
  int64_t last_output_ns() const { return last_output_ns_; }

 private:
  void deliver(std::string_view line);
  void keep(std::string_view line);

  base::FileDescriptor pipe_;
  OutputTarget target_;
  LineSplitter splitter_;
  std::deque<std::string> tail_;
  bool ends_in_frame_ = false;  // what comes next takes the tail's last place
  int64_t last_output_ns_;
};

// The last lines of a log file, as a terminal shows them; empty when it cannot
// be read.
std::vector<std::string> last_lines(const std::filesystem::path& path,
                                    size_t count);

}  // namespace lockstep::launch
