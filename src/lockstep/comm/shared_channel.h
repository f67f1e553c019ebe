// Steps that the ranks of one machine take together.
//
// All ranks run the same collectives and so the same steps. A rank counts its
// steps in its own control page; the others read the counter, spin for some
// microseconds and then sleep on it (futex).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/comm/shared_arena.h"

namespace lockstep::comm {

// Reasons to wait no longer; a rank that waits asks about every 10 ms.
struct WaitEnd {
  std::function<bool()> is_job_lost = [] { return false; };
  // This rank leaves; nobody sees the error.
  std::function<bool()> is_closed = [] { return false; };
};

enum class WaitStyle {
  kSpin,   // The thread has nothing else to do.
  kSleep,  // In the background: leave the processor to those who compute.
};

struct WaitConfig {
  WaitStyle style = WaitStyle::kSpin;
  int64_t timeout_ns = 0;  // For the whole collective.
};

// One per rank and channel. Not thread-safe: one thread at a time.
class SharedChannel {
 public:
  SharedChannel(std::shared_ptr<SharedArena> arena, int index,
                WaitEnd end = {});

  SharedArena& arena() const { return *arena_; }
  int rank() const { return arena_->rank(); }
  int size() const { return arena_->size(); }
  const ChannelSizes& sizes() const { return kChannelSizes[index_]; }

  // The slot of this collective, or the n-th piece of staging, of a rank.
  std::byte* slot(int rank) const;
  std::byte* piece(int rank, uint32_t number) const;

  // The next collective. Throws what made an earlier one fail.
  void advance();
  // Its time starts when it is first waited for.
  void start_waiting(const WaitConfig& wait);
  // Everything that this rank wrote before is there for those who wait for the
  // step.
  void arrive();
  // Returns when every rank has taken this rank's step. Throws PeerError when
  // one is gone and TimeoutError when it is late.
  void wait_for_all();
  // The same for one rank.
  void wait_for(int rank);

  // Records the failure for all ranks, and throws it.
  [[noreturn]] void fail(const Failure& failure) const;

 private:
  StepCounter& counter(int rank) const;
  bool has_arrived(int rank) const;
  std::vector<int> late_ranks() const;
  bool spin_for(int rank) const;
  void check_for_end() const;

  std::shared_ptr<SharedArena> arena_;
  int index_;
  WaitEnd end_;
  WaitConfig wait_;
  bool may_spin_;
  uint32_t number_ = 0;
  uint32_t step_ = 0;
  int64_t deadline_ns_ = 0;
};

}  // namespace lockstep::comm
