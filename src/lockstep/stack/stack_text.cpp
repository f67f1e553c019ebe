#include "lockstep/stack/stack_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace lockstep::stack {
namespace {

constexpr size_t kMaxShown = 8;
constexpr size_t kMaxFrames = 15;
constexpr size_t kInnermost = 5;  // always shown

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool contains_any(std::string_view text,
                  std::span<const std::string_view> parts) {
  return std::ranges::any_of(
      parts, [text](std::string_view part) { return contains(text, part); });
}

// Calls that wait for an event; not locks and not a plain sleep.
bool is_wait(const Frame& frame) {
  constexpr std::array<std::string_view, 9> kCalls = {
      "cond_wait", "cond_timedwait", "cond_clockwait",
      "epoll_",    "poll",           "select",
      "accept",    "sigtimedwait",   "futex_abstimed_wait"};
  return contains_any(frame.function, kCalls);
}

bool is_runtime(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kModules = {
      "libc.so", "libstdc++", "libpthread", "ld-linux"};
  return contains_any(frame.module, kModules) ||
         frame.function.starts_with("std::");
}

std::string frame_text(size_t number, const Frame& frame) {
  if (frame.function.empty()) {
    return fmt::format("  #{} {:#x} ({})\n", number, frame.offset,
                       frame.module);
  }
  return fmt::format("  #{} {}+{:#x} ({})\n", number, frame.function,
                     frame.offset, frame.module);
}

// The innermost frames of a long stack and those of the program itself: calls
// between functions of libtorch are many.
std::vector<size_t> shown_frames(const std::vector<Frame>& frames) {
  std::vector<size_t> shown;
  const bool is_long = frames.size() > kMaxFrames;
  for (size_t i = 0; i < frames.size() && shown.size() < kMaxFrames; ++i) {
    if (!is_long || i < kInnermost || frames[i].is_program) shown.push_back(i);
  }
  return shown;
}

std::string frames_text(const std::vector<Frame>& frames) {
  std::string text;
  size_t next = 0;
  const auto skip_to = [&](size_t index) {
    if (index > next) text += fmt::format("  ... {} frames\n", index - next);
    next = index + 1;
  };
  for (const size_t index : shown_frames(frames)) {
    skip_to(index);
    text += frame_text(index, frames[index]);
  }
  skip_to(frames.size());
  return text;
}

const char* state_text(char state) {
  switch (state) {
    case 'R': return "running";
    case 'D': return "waiting for a disk or device";
    case 'T': return "stopped";
    case 't': return "traced";
    default: return "sleeping";
  }
}

}  // namespace

bool is_idle(const ThreadStack& thread) {
  if (thread.state == 'R' || thread.state == 'D') return false;
  if (thread.frames.empty()) return true;
  bool is_waiting = false;
  for (const Frame& frame : thread.frames) {
    is_waiting |= is_wait(frame);
    if (is_runtime(frame)) continue;
    // The first function that is not the runtime's.
    if (frame.function.starts_with("lockstep::")) {
      // By a system call, until another rank dies.
      return is_waiting || contains(frame.function, "::wait_for_interrupt(");
    }
    if (frame.is_program) return false;
    // OpenMP's pool waits by system calls of its own.
    return is_waiting || frame.module.starts_with("libgomp");
  }
  return is_waiting;
}

std::string stack_text(std::span<const ThreadStack> threads) {
  std::string text;
  std::vector<std::string> seen;
  size_t num_idle = 0;
  size_t num_alike = 0;
  size_t num_others = 0;
  for (const ThreadStack& thread : threads) {
    const bool is_first = &thread == threads.data();
    if (!is_first && is_idle(thread)) {
      ++num_idle;
      continue;
    }
    const std::string frames = thread.problem.empty()
                                   ? frames_text(thread.frames)
                                   : "  " + thread.problem + "\n";
    if (std::ranges::find(seen, frames) != seen.end()) {
      ++num_alike;
      continue;
    }
    if (seen.size() == kMaxShown) {
      ++num_others;
      continue;
    }
    seen.push_back(frames);
    text +=
        fmt::format("{} {} ({}), {}:\n{}", is_first ? "main thread" : "thread",
                    thread.id, thread.name, state_text(thread.state), frames);
  }
  if (num_alike > 0) {
    text += fmt::format("{} more like these\n", num_alike);
  }
  if (num_others > 0) text += fmt::format("{} others\n", num_others);
  if (num_idle > 0) {
    text += fmt::format("{} that wait for work are left out\n", num_idle);
  }
  return text;
}

}  // namespace lockstep::stack
