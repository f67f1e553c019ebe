#include "lockstep/launch/stack_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/spawn.h"
#include "lockstep/launch/worker_program.h"

namespace lockstep::launch {
namespace {

constexpr size_t kMostWaiting = 4;
constexpr size_t kMostBytes = 64 << 10;
constexpr int64_t kTimeLimitNs = 2 * base::kNsPerSecond;
constexpr const char* kProgram = "lockstep-stack";

}  // namespace

StackReader::~StackReader() { end(); }

void StackReader::request(int rank, pid_t pid) {
  if (waiting_.size() < kMostWaiting) waiting_.push_back({rank, pid});
}

int64_t StackReader::deadline_ns() const {
  if (current_) return deadline_ns_;
  return waiting_.empty() ? INT64_MAX : 0;
}

std::vector<std::string> StackReader::take_lines() {
  if (!current_) {
    if (waiting_.empty()) return {};
    const Target target = waiting_.front();
    waiting_.pop_front();
    start(target);
  }
  const bool is_late = base::monotonic_ns() >= deadline_ns_;
  if (!read_output() && !is_late) return {};
  if (is_late && text_.empty()) problem_ = "not readable within 2 s";
  std::vector<std::string> lines = {
      fmt::format("stack of rank {} (pid {}):{}{}", current_->rank,
                  current_->pid, problem_.empty() ? "" : " ", problem_)};
  for (const std::string& line : base::split(text_, '\n')) {
    if (!line.empty()) lines.push_back("  " + base::printable_text(line));
  }
  end();
  return lines;
}

void StackReader::start(const Target& target) {
  current_ = target;
  text_.clear();
  problem_.clear();
  deadline_ns_ = base::monotonic_ns() + kTimeLimitNs;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    problem_ = "cannot make a pipe: " + base::errno_text();
    return;
  }
  output_ = base::FileDescriptor(ends[0]);
  const base::FileDescriptor write_end(ends[1]);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  try {
    const base::Environment environment = base::process_environment();
    const std::string program =
        find_companion(kProgram, environment, own_folder());
    reader_ =
        Spawner().start({.file = program,
                         .arguments = {program, std::to_string(target.pid)},
                         .environment = environment,
                         .stdout_fd = write_end.get(),
                         .stderr_fd = write_end.get(),
                         .cpus = {}});
  } catch (const Error& error) {
    problem_ = error.what();
  }
}

bool StackReader::read_output() {
  if (!output_) return true;
  std::array<char, 4096> bytes{};
  for (;;) {
    const ssize_t count = read(output_.get(), bytes.data(), bytes.size());
    if (count == 0) return true;
    if (count < 0) return errno != EAGAIN && errno != EINTR;
    const size_t room = kMostBytes - text_.size();
    text_.append(bytes.data(), std::min(room, static_cast<size_t>(count)));
  }
}

// The launcher's loop waits for the process, as for all others.
void StackReader::end() {
  if (output_ && reader_ > 0) killpg(reader_, SIGKILL);
  output_.reset();
  reader_ = 0;
  current_.reset();
}

}  // namespace lockstep::launch
