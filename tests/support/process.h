// Programs under test: start, signal, wait with a deadline, look for leftovers.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::testing {

struct ProcessOptions {
  // Added to this process's environment, less all variables of a launcher.
  std::map<std::string, std::string> environment = {};
  std::string folder = {};       // working folder; empty: this one
  double timeout_seconds = 240;  // then it is killed; for loaded machines
  std::vector<int> ignored_signals = {};  // as under nohup
  int terminal_fd = -1;  // stdout and stderr instead of being captured
};

struct ProcessResult {
  int exit_code = 0;  // negative: died by this signal
  bool timed_out = false;
  double seconds = 0;
  std::string out;
  std::string err;
};

// A program in the background. Output goes to files, so that it never blocks.
class Process {
 public:
  Process(const std::vector<std::string>& command, ProcessOptions options = {});
  ~Process();  // Kills it when it still runs.
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // A text that all processes started by this one carry in their environment.
  const std::string& marker() const { return marker_; }
  void send(int signal) const;
  ProcessResult wait();
  std::string out() const;  // what it wrote until now
  std::string err() const;
  // Waits until stdout contains the text; false when that does not happen.
  bool wait_for_output(const std::string& text, double seconds = 120) const;

 private:
  pid_t pid_ = 0;
  bool is_waited_ = false;
  double begin_ = 0;
  double deadline_ = 0;
  std::string marker_;
  base::FileDescriptor out_;
  base::FileDescriptor err_;
};

// A program in the folder of this one.
std::string beside_this_program(const char* name);

ProcessResult run(const std::vector<std::string>& command,
                  ProcessOptions options = {});

// Living processes that carry the marker.
std::vector<pid_t> find_marked(const std::string& marker);

// Waits until no marked process is left; returns those that are.
std::vector<pid_t> wait_until_gone(const std::string& marker, double seconds);

// Polls the condition every few milliseconds.
template <typename Condition>
bool wait_for(Condition condition, double seconds);

double now_seconds();
void sleep_briefly();

template <typename Condition>
bool wait_for(Condition condition, double seconds) {
  const double deadline = now_seconds() + seconds;
  while (!condition()) {
    if (now_seconds() > deadline) return false;
    sleep_briefly();
  }
  return true;
}

}  // namespace lockstep::testing
