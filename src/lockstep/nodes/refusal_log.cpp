#include "lockstep/nodes/refusal_log.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::nodes {

RefusalLog::RefusalLog() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) {
    throw IoError("cannot serve the other nodes: " + base::errno_text());
  }
}

void RefusalLog::add(const std::string& reason, const std::string& address) {
  const std::lock_guard lock(mutex_);
  Refusals& refusals = refusals_[reason];
  if (refusals.count++ > 0) return;
  refusals.first_address = address;
  const uint64_t one = 1;
  const ssize_t written [[maybe_unused]] =
      write(event_.get(), &one, sizeof(one));
}

std::vector<std::string> RefusalLog::take_first() {
  // Before the lock: one that comes meanwhile is among the lines, or the next.
  uint64_t ignored = 0;
  const ssize_t size [[maybe_unused]] =
      read(event_.get(), &ignored, sizeof(ignored));
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (auto& [reason, refusals] : refusals_) {
    if (refusals.num_told > 0) continue;
    refusals.num_told = 1;
    lines.push_back(
        fmt::format("refused a connection at the launchers' port (from {}): {}",
                    refusals.first_address, reason));
  }
  return lines;
}

std::vector<std::string> RefusalLog::take_all() {
  std::vector<std::string> lines = take_first();
  const std::lock_guard lock(mutex_);
  for (auto& [reason, refusals] : refusals_) {
    const int64_t more = refusals.count - refusals.num_told;
    if (more == 0) continue;
    refusals.num_told = refusals.count;
    lines.push_back(
        fmt::format("refused {} more connection{} at the launchers' port: {}",
                    more, more == 1 ? "" : "s", reason));
  }
  return lines;
}

}  // namespace lockstep::nodes
