// A decision that all ranks agree on, without waiting inside a step.
//
// At step k every rank posts its opinion; at step k + 1 every rank reads the
// same answer. The reduction overlaps with the step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace lockstep::comm {

// Every rank must post and read in the same order. Not thread-safe.
class Vote {
 public:
  struct Channel;

  explicit Vote(std::shared_ptr<Channel> channel);
  ~Vote();
  Vote(Vote&&) noexcept;
  Vote& operator=(Vote&&) noexcept;

  // Returns at once. Throws ConfigError when the previous answer was not read.
  void post(int64_t opinion);

  // The largest opinion of the last post; no value when nothing was posted
  // since the last read. By the next step the answer is here; if not, waits for
  // it. Throws as a collective.
  std::optional<int64_t> read();

 private:
  struct Pending;
  std::shared_ptr<Channel> channel_;
  std::unique_ptr<Pending> pending_;
};

}  // namespace lockstep::comm
