#include "lockstep/comm/interrupt_watch.h"

#include <chrono>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

// A wake that comes just before the wait is lost.
constexpr std::chrono::milliseconds kLongestWait{100};

constexpr const char* kInterrupted =
    "another rank was lost: the launcher has told this one to connect anew";

}  // namespace

InterruptWatch::InterruptWatch(const base::RecoveryWriter& page)
    : page_(page),
      generation_(page.generation()),
      seen_(page.interrupts()),
      thread_([this] { run(); }) {}

InterruptWatch::~InterruptWatch() {
  is_ending_ = true;
  page_.wake_waiting();
  thread_.join();
}

void InterruptWatch::connecting(int generation,
                                std::shared_ptr<OpenCollectives> collectives) {
  {
    const std::lock_guard lock(mutex_);
    collectives_ = std::move(collectives);
    device_ = {};
  }
  generation_ = generation;
  connections_.begin();
}

void InterruptWatch::connected(WatchedDevice device) {
  {
    const std::lock_guard lock(mutex_);
    device_ = std::move(device);
  }
  connections_.end();
  if (!is_interrupted()) return;
  store_.shut_down();
  connections_.shut_down();
  fail_collectives(kInterrupted);
}

void InterruptWatch::let_go() {
  connections_.shut_down();
  connections_.forget();
  fail_collectives("this rank has let go of the others");
  const std::lock_guard lock(mutex_);
  device_ = {};
}

// Only the exchange that was asked about: another one may be there already.
// Collectives over the network end when the other rank closes its side.
void InterruptWatch::abort_with_others() {
  WatchedDevice device;
  {
    const std::lock_guard lock(mutex_);
    device = device_;
  }
  const auto exchange = device.exchange.lock();
  if (!exchange || exchange->is_aborted() || !device.has_one_let_go) return;
  if (device.has_one_let_go()) exchange->abort();
}

void InterruptWatch::fail_collectives(const char* why) {
  std::shared_ptr<OpenCollectives> collectives;
  std::shared_ptr<DeviceExchange> device_exchange;
  {
    const std::lock_guard lock(mutex_);
    collectives = collectives_;
    device_exchange = device_.exchange.lock();
  }
  if (device_exchange) device_exchange->abort();
  if (collectives) collectives->fail(std::make_exception_ptr(PeerError(why)));
}

void InterruptWatch::run() {
  uint32_t heard = seen_;
  while (!is_ending_) {
    page_.wait_for_interrupt(heard, kLongestWait);
    heard = page_.interrupts();
    // The next connections may be under way already.
    const auto is_due = [this] { return is_interrupted() || is_outdated(); };
    store_.shut_down_if([this] { return is_interrupted(); });
    connections_.shut_down_if(is_due);
    if (is_due()) {
      fail_collectives(kInterrupted);
    } else {
      abort_with_others();
    }
  }
}

}  // namespace lockstep::comm
