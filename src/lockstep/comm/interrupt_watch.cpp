#include "lockstep/comm/interrupt_watch.h"

#include <chrono>

namespace lockstep::comm {
namespace {

// A wake that comes just before the wait is lost.
constexpr std::chrono::milliseconds kLongestWait{100};

}  // namespace

InterruptWatch::InterruptWatch(const base::RecoveryWriter& page)
    : page_(page), seen_(page.interrupts()), thread_([this] { run(); }) {}

InterruptWatch::~InterruptWatch() {
  is_ending_ = true;
  page_.wake_waiting();
  thread_.join();
}

void InterruptWatch::connected() {
  connections_.end();
  if (!is_interrupted()) return;
  store_.shut_down();
  connections_.shut_down();
}

void InterruptWatch::let_go() {
  connections_.shut_down();
  connections_.forget();
}

void InterruptWatch::run() {
  uint32_t heard = seen_;
  while (!is_ending_) {
    page_.wait_for_interrupt(heard, kLongestWait);
    heard = page_.interrupts();
    // The next connections may be under way already.
    const auto is_due = [this] { return is_interrupted(); };
    store_.shut_down_if(is_due);
    connections_.shut_down_if(is_due);
  }
}

}  // namespace lockstep::comm
