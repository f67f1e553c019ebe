// A disk that is full, for this process.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace lockstep::testing {

// While it lives, no file of this process grows beyond this size: a write ends
// early, the next fails.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes)
      : handler_before_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_before_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*handler_before_)(int);
  rlimit before_ = {};
};

}  // namespace lockstep::testing
