#include "support/peak_memory.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

int64_t resident_bytes() {
  const auto words = base::split(base::read_file("/proc/self/statm"), ' ');
  return *base::parse_integer(words.at(1)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

int64_t peak_memory_bytes(const std::function<void()>& work) {
  const int64_t before = resident_bytes();
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child ||
      !WIFEXITED(status)) {
    return -1;
  }
  return std::max<int64_t>(usage.ru_maxrss * 1024 - before, 0);
}

}  // namespace lockstep::testing
