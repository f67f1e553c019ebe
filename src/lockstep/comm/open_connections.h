// Connections to other ranks that another thread can let go of. Gloo has no
// abort: a rank that waits for one which has fallen silent would wait until its
// time limit.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <optional>
#include <set>

namespace lockstep::comm {

// Finds them among this process's sockets by the time at which they were made.
class OpenConnections {
 public:
  // TCP connections that this process makes from here on are those to other
  // ranks ...
  void begin();
  // ... until here.
  void end();
  // They are being closed by their owner.
  void forget();

  // Shuts them down: who waits for their other end gets an error, as if it had
  // closed. May be called on any thread.
  void shut_down();
  // `is_due` is asked when no other call is under way.
  void shut_down_if(const std::function<bool()>& is_due);

 private:
  std::mutex mutex_;
  // Inodes of sockets.
  std::optional<std::set<ino_t>> before_;
  std::optional<std::set<ino_t>> own_;
};

}  // namespace lockstep::comm
