// Stacks of a process in words: the threads that explain why it is stuck.
#pragma once

#include <span>
#include <string>

#include "lockstep/stack/native_stack.h"

namespace lockstep::stack {

// True for a thread that waits for work: inside of a library's or Lockstep's
// own function it waits for a condition, a socket or a timer.
bool is_idle(const ThreadStack& thread);

// The first thread and up to four of the others that are not idle, at most 15
// frames each; threads with equal frames once.
std::string stack_text(std::span<const ThreadStack> threads);

}  // namespace lockstep::stack
