// Makes calls of the file system fail, for tests with real programs: a library
// for LD_PRELOAD.
//
// DISK_FAULTS names a file with one fault per line, "CALL ERRNO SIZE PATTERN":
//
//   write  ENOSPC 1000 */checkpoint_*   a file cannot grow beyond 1000 bytes
//   fsync  EIO    0    *.partial.*
//   open   EROFS  0    */run/*
//   rename EIO    0    */checkpoint_*   by the old name or the new one
//   fsync  HOLD   0    *.partial.*      no failure: waits until the line is
//   gone
//   write  HOLD   1    */metrics.jsonl  as long as the file has that size
//
// SIZE counts for write alone. The file is read at every call, so that faults
// come and go while a program runs; without the file there are none.
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <sstream>
#include <string>

namespace {

constexpr int kHold = -1;

int errno_named(const std::string& name) {
  if (name == "HOLD") return kHold;
  if (name == "ENOSPC") return ENOSPC;
  if (name == "EIO") return EIO;
  return EROFS;
}

// By system calls: the functions of this file must not call themselves.
std::string read_faults() {
  const char* path = std::getenv("DISK_FAULTS");
  const auto file = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, path ? path : "", O_RDONLY | O_CLOEXEC));
  if (file < 0) return "";
  std::array<char, 4096> buffer{};
  const ssize_t count = read(file, buffer.data(), buffer.size());
  close(file);
  return {buffer.data(), static_cast<size_t>(count < 0 ? 0 : count)};
}

struct Fault {
  int reason = 0;
  off_t allowed_size = 0;
};

std::optional<Fault> find_fault(const std::string& call,
                                const std::string& path) {
  const int before = errno;
  std::istringstream faults(read_faults());
  errno = before;
  std::string name;
  std::string reason;
  std::string pattern;
  off_t allowed = 0;
  while (faults >> name >> reason >> allowed >> pattern) {
    if (name == call && fnmatch(pattern.c_str(), path.c_str(), 0) == 0) {
      return Fault{.reason = errno_named(reason), .allowed_size = allowed};
    }
  }
  return std::nullopt;
}

void take_a_nap() {
  const timespec nap{.tv_sec = 0, .tv_nsec = 5'000'000};
  nanosleep(&nap, nullptr);
}

// Whether the call fails; errno is then set.
bool fails(const std::string& call, const std::string& path) {
  auto fault = find_fault(call, path);
  while (fault && fault->reason == kHold) {
    take_a_nap();
    fault = find_fault(call, path);
  }
  if (fault) errno = fault->reason;
  return fault.has_value();
}

std::string path_of(int file) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t count = readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<size_t>(count < 0 ? 0 : count)};
}

template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

// A disk that fills up takes the bytes that fit and then none.
ssize_t write(int file, const void* bytes, size_t count) {
  struct stat status{};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    auto fault = find_fault("write", path_of(file));
    while (fault && fault->reason == kHold &&
           status.st_size >= fault->allowed_size) {
      take_a_nap();
      fault = find_fault("write", path_of(file));
    }
    if (fault && fault->reason != kHold) {
      const off_t room = fault->allowed_size - status.st_size;
      if (room <= 0) {
        errno = fault->reason;
        return -1;
      }
      count = std::min(count, static_cast<size_t>(room));
    }
  }
  return next(write, "write")(file, bytes, count);
}

int fsync(int file) {
  return fails("fsync", path_of(file)) ? -1 : next(fsync, "fsync")(file);
}

int rename(const char* from, const char* to) noexcept {
  if (fails("rename", from) || fails("rename", to)) return -1;
  return next(rename, "rename")(from, to);
}

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const bool is_writing = (flags & O_ACCMODE) != O_RDONLY;
  if (is_writing && fails("open", path)) return -1;
  return next(open, "open")(path, flags, mode);
}
}
