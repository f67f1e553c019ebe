#include "lockstep/datasets/conversion/child_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/process_memory.h"
#include "lockstep/base/signals.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

using Clock = std::chrono::steady_clock;

// A report is a kind, the size of its text, and the text.
enum class Kind : char {
  kMessage = 'm',
  kAlive = 'a',
  kWaiting = 'w',
  kFormatError = 'f',
  kConfigError = 'c',
  kIoError = 'i',
  kDone = 'd',
};

struct Header {
  Kind kind = Kind::kAlive;
  std::array<char, 3> padding = {};
  uint32_t size = 0;
};

constexpr size_t kMostText = size_t{512} << 20U;

void send_report(int fd, Kind kind, std::string_view text) {
  const Header header{.kind = kind, .size = static_cast<uint32_t>(text.size())};
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  bytes += text;
  // Without a reader there is nobody to work for.
  if (!base::write_all(fd, bytes)) _exit(1);
}

std::string memory_text(size_t bytes) {
  return fmt::format("{} MiB", bytes >> 20U);
}

void set_limit(decltype(RLIMIT_AS) what, size_t value) {
  rlimit limit{};
  getrlimit(what, &limit);
  limit.rlim_cur = std::min<rlim_t>(value, limit.rlim_max);
  setrlimit(what, &limit);
}

// What a library prints about a damaged file is not for the user.
void silence_output() {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

void restrict_process(const ChildLimits& limits, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // Neither a core file nor a program that collects them.
  set_limit(RLIMIT_CORE, 0);
  prctl(PR_SET_DUMPABLE, 0);
  if (limits.memory_bytes > 0) {
    // A sanitizer has terabytes of addresses.
    const auto in_use =
        static_cast<size_t>(base::process_memory().mapped_bytes);
    set_limit(RLIMIT_AS, in_use + limits.memory_bytes);
  }
  silence_output();
}

[[noreturn]] void run_child(const ChildTask& task, const ChildLimits& limits,
                            int fd, pid_t parent) {
  restrict_process(limits, parent);
  try {
    task.work(ChildChannel(fd));
    send_report(fd, Kind::kDone, "");
  } catch (const FormatError& error) {
    send_report(fd, Kind::kFormatError, error.what());
  } catch (const ConfigError& error) {
    send_report(fd, Kind::kConfigError, error.what());
  } catch (const IoError& error) {
    send_report(fd, Kind::kIoError, error.what());
  } catch (const std::bad_alloc&) {
    send_report(fd, Kind::kFormatError,
                limits.memory_bytes == 0
                    ? "reading it takes more memory than there is"
                    : fmt::format("reading it takes more memory than {}",
                                  memory_text(limits.memory_bytes)));
  } catch (const std::exception& error) {
    send_report(fd, Kind::kFormatError, error.what());
  }
  _exit(0);
}

std::string death_text(int status) {
  if (!WIFSIGNALED(status)) {
    return fmt::format(
        "reading it ended the process with exit code {}; the file is damaged",
        WEXITSTATUS(status));
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) {
    return "the process that read it was " + base::signal_meaning(signal);
  }
  return fmt::format("reading it crashed ({}); the file is damaged",
                     base::signal_name(signal));
}

}  // namespace

void ChildChannel::send(std::string_view message) const {
  send_report(fd_, Kind::kMessage, message);
}

void ChildChannel::alive() const { send_report(fd_, Kind::kAlive, ""); }

void ChildChannel::begin_waiting() const {
  send_report(fd_, Kind::kWaiting, "");
}

// A process and what it has reported.
struct ChildPool::Child {
  ChildTask task;
  std::chrono::milliseconds silence;
  pid_t pid = -1;
  base::FileDescriptor pipe = {};
  std::string unread = {};
  std::optional<Clock::time_point> deadline = {};
  bool is_done = false;
  std::optional<ChildFailure> failure = {};

  Child(ChildTask the_task, const ChildLimits& limits)
      : task(std::move(the_task)), silence(limits.silence) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw IoError("cannot make a pipe: " + base::errno_text());
    }
    pipe = base::FileDescriptor(ends[0]);
    base::FileDescriptor writing(ends[1]);
    const pid_t parent = getpid();
    pid = fork();
    if (pid < 0) throw IoError("cannot start a process: " + base::errno_text());
    if (pid == 0) run_child(task, limits, writing.get(), parent);
    deadline = Clock::now() + silence;
  }

  ~Child() {
    if (pid < 0) return;
    kill(pid, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int wait() {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    return status;
  }

  // False at the end of the pipe.
  bool read_reports() {
    std::array<char, 65536> block{};
    const ssize_t count = read(pipe.get(), block.data(), block.size());
    if (count < 0) return errno == EINTR;
    if (count == 0) return false;
    unread.append(block.data(), static_cast<size_t>(count));
    take_reports();
    return !failure;
  }

  void take_reports() {
    size_t begin = 0;
    Header header;
    while (!failure && unread.size() - begin >= sizeof(header)) {
      std::memcpy(&header, unread.data() + begin, sizeof(header));
      if (header.size > kMostText) {
        failure = "reading it gave more text than can be; the file is damaged";
        return;
      }
      if (unread.size() - begin - sizeof(header) < header.size) break;
      take_report(header.kind, std::string_view(unread).substr(
                                   begin + sizeof(header), header.size));
      begin += sizeof(header) + header.size;
    }
    unread.erase(0, begin);
  }

  void take_report(Kind kind, std::string_view text) {
    deadline = Clock::now() + silence;
    switch (kind) {
      case Kind::kMessage:
        if (task.take) task.take(text);
        break;
      case Kind::kAlive: break;
      case Kind::kWaiting: deadline.reset(); break;
      case Kind::kDone: is_done = true; break;
      case Kind::kConfigError: throw ConfigError(std::string(text));
      case Kind::kIoError: throw IoError(std::string(text));
      case Kind::kFormatError: failure = std::string(text); break;
    }
  }

  void kill_when_late() {
    if (!deadline || Clock::now() < *deadline || failure) return;
    failure =
        fmt::format("reading it made no progress for {:g} s, and was stopped",
                    std::chrono::duration<double>(silence).count());
  }

  // After the last report.
  ChildFailure take_end() {
    if (failure) kill(pid, SIGKILL);
    const int status = wait();
    if (failure) return *failure;
    return is_done ? "" : death_text(status);
  }
};

ChildPool::ChildPool(int64_t most_children, const ChildLimits& limits)
    : most_children_(most_children), limits_(limits) {}

ChildPool::~ChildPool() = default;

void ChildPool::add(ChildTask task) { waiting_.push_back(std::move(task)); }

void ChildPool::run() {
  while (true) {
    while (!waiting_.empty() && std::ssize(running_) < most_children_) {
      start_next();
    }
    if (running_.empty()) return;
    wait_for_reports();
  }
}

void ChildPool::start_next() {
  ChildTask task = std::move(waiting_.front());
  waiting_.pop_front();
  running_.push_back(std::make_unique<Child>(std::move(task), limits_));
}

void ChildPool::wait_for_reports() {
  constexpr std::chrono::milliseconds kLongest{1000};
  std::vector<pollfd> polls;
  auto wait = kLongest;
  for (const auto& child : running_) {
    polls.push_back({.fd = child->pipe.get(), .events = POLLIN, .revents = 0});
    if (!child->deadline) continue;
    wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(
                              *child->deadline - Clock::now()));
  }
  wait = std::max(wait, std::chrono::milliseconds(0));
  const auto begin = Clock::now();
  poll(polls.data(), polls.size(), static_cast<int>(wait.count()));
  // While this process did not run (Ctrl-Z), the children may not have either.
  const auto late = Clock::now() - begin - wait;
  for (const auto& child : running_) {
    if (child->deadline && late > late.zero()) *child->deadline += late;
  }
  // From the back, since ended ones are taken out.
  for (size_t i = polls.size(); i-- > 0;) {
    Child& child = *running_[i];
    const bool is_open = polls[i].revents == 0 || child.read_reports();
    if (is_open) child.kill_when_late();
    if (!is_open || child.failure) end_child(i);
  }
}

void ChildPool::end_child(size_t index) {
  const std::unique_ptr<Child> child = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<ptrdiff_t>(index));
  const ChildFailure failure = child->take_end();
  if (child->task.end) child->task.end(failure);
}

std::string text_from_child(const std::function<std::string()>& work,
                            const ChildLimits& limits) {
  std::string text;
  ChildFailure failure;
  ChildPool pool(1, limits);
  pool.add({.work = [&](const ChildChannel& parent) { parent.send(work()); },
            .take = [&](std::string_view message) { text = message; },
            .end = [&](const ChildFailure& why) { failure = why; }});
  pool.run();
  if (!failure.empty()) throw FormatError(failure);
  return text;
}

}  // namespace lockstep::conversion
