// Lets go of the other ranks: when this one closes its connections, and when
// the launcher wants it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "lockstep/base/recovery_page.h"
#include "lockstep/comm/device_exchange.h"
#include "lockstep/comm/interruptible_gloo.h"
#include "lockstep/comm/open_connections.h"

namespace lockstep::comm {

// What a rank that waits for others on its GPU needs. The exchange is kept by
// its owner.
struct WatchedDevice {
  std::weak_ptr<DeviceExchange> exchange = {};
  // Another rank has let go, of which nothing on the device tells. Called on
  // the thread that watches.
  std::function<bool()> has_one_let_go = {};
};

// A thread that waits for the launcher's interrupts and shuts the connections
// down that were made before: to the ranks and to the store.
class InterruptWatch {
 public:
  explicit InterruptWatch(const base::RecoveryWriter& page);
  ~InterruptWatch();  // Waits for the thread.
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // From here on an interrupt is about the connections that are made next.
  void follow() { seen_ = page_.interrupts(); }
  // Around the making of the connection to the store, whose machine may fall
  // silent, too.
  void opening_store() { store_.begin(); }
  void opened_store() { store_.end(); }
  // Around the making of those to the ranks of a generation. Once they end, or
  // the launcher has announced another one, so do the collectives.
  void connecting(int generation = 0,
                  std::shared_ptr<OpenCollectives> collectives =
                      std::make_shared<OpenCollectives>());
  // An exchange between GPUs ends with the collectives.
  void connected(WatchedDevice device = {});
  // They are about to be closed. A thread of Gloo may wait for a rank that does
  // the same, and its owner for that thread.
  void let_go();
  // The connection to the store is closed.
  void closed_store() { store_.forget(); }

  // There was an interrupt since follow().
  bool is_interrupted() const { return page_.interrupts() != seen_; }

 private:
  void run();
  bool is_outdated() const { return page_.generation() != generation_; }
  void abort_with_others();
  void fail_collectives(const char* why);

  base::RecoveryWriter page_;
  OpenConnections store_;
  OpenConnections connections_;
  std::mutex mutex_;
  std::shared_ptr<OpenCollectives> collectives_;  // Protected by mutex_.
  WatchedDevice device_;                          // Protected by mutex_.
  std::atomic<int> generation_ = 0;
  std::atomic<uint32_t> seen_;  // Interrupts before follow().
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

}  // namespace lockstep::comm
