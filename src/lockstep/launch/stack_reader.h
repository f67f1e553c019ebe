// The stack of a running worker, read by a program of its own
// (lockstep-stack): whatever happens to that one, the launcher goes on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::launch {

// Never blocks; one stack at a time, each within 2 s.
class StackReader {
 public:
  StackReader() = default;
  ~StackReader();
  StackReader(const StackReader&) = delete;
  StackReader& operator=(const StackReader&) = delete;

  // At most four wait; further ones are dropped.
  void request(int rank, pid_t pid);

  // To be polled for input; -1: nothing is read.
  int fd() const { return output_.get(); }
  // When take_lines() should be called next; INT64_MAX: not needed.
  int64_t deadline_ns() const;

  // Starts and reads what it can; the lines of a stack when it is complete.
  std::vector<std::string> take_lines();

 private:
  struct Target {
    int rank = 0;
    pid_t pid = 0;
  };

  void start(const Target& target);
  // True at the end of the output.
  bool read_output();
  void end();

  std::deque<Target> waiting_;
  std::optional<Target> current_;
  pid_t reader_ = 0;
  base::FileDescriptor output_;
  std::string text_;
  std::string problem_;  // why it could not be started
  int64_t deadline_ns_ = 0;
};

}  // namespace lockstep::launch
