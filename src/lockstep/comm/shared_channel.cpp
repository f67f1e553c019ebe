#include "lockstep/comm/shared_channel.h"

#include <fmt/format.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

constexpr int64_t kSpinNs = 20'000;
constexpr long kSliceNs = 10'000'000;

// Between processes: not the private kind.
void sleep_on(std::atomic<uint32_t>& word, uint32_t value) {
  const timespec slice{.tv_sec = 0, .tv_nsec = kSliceNs};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &slice, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// Counters wrap around.
bool is_reached(uint32_t arrived, uint32_t step) {
  return static_cast<int32_t>(arrived - step) >= 0;
}

}  // namespace

SharedChannel::SharedChannel(std::shared_ptr<SharedArena> arena, int index,
                             WaitEnd end)
    : arena_(std::move(arena)),
      index_(index),
      end_(std::move(end)),
      may_spin_(arena_->size() <= arena_->num_processors()) {}

std::byte* SharedChannel::slot(int rank) const {
  return arena_->slot(rank, index_, number_);
}

std::byte* SharedChannel::piece(int rank, uint32_t number) const {
  return arena_->piece(rank, index_, number);
}

StepCounter& SharedChannel::counter(int rank) const {
  return arena_->control(rank).steps[index_];
}

bool SharedChannel::has_arrived(int rank) const {
  return is_reached(counter(rank).arrived.load(std::memory_order_acquire),
                    step_);
}

void SharedChannel::advance() {
  if (const auto failure = arena_->failure()) throw_failure(*failure);
  ++number_;
}

void SharedChannel::start_waiting(const WaitConfig& wait) {
  wait_ = wait;
  deadline_ns_ = base::monotonic_ns() + wait.timeout_ns;
}

// Sequentially consistent on both sides: either the waiter sees the new step,
// or this rank sees the waiter.
void SharedChannel::arrive() {
  StepCounter& own = counter(rank());
  own.arrived.store(++step_);
  if (own.num_waiting.load() != 0) wake_all(own.arrived);
}

void SharedChannel::wait_for_all() {
  for (int rank = 0; rank < size(); ++rank) wait_for(rank);
}

bool SharedChannel::spin_for(int rank) const {
  if (!may_spin_ || wait_.style == WaitStyle::kSleep) return false;
  constexpr int kNumPauses = 32;
  const int64_t end = base::monotonic_ns() + kSpinNs;
  do {
    for (int pause = 0; pause < kNumPauses; ++pause) {
      if (has_arrived(rank)) return true;
      _mm_pause();
    }
  } while (base::monotonic_ns() < end);
  return false;
}

void SharedChannel::wait_for(int rank) {
  if (has_arrived(rank) || spin_for(rank)) return;
  StepCounter& other = counter(rank);
  if (const auto failure = arena_->failure()) throw_failure(*failure);
  for (;;) {
    other.num_waiting.fetch_add(1);
    const uint32_t arrived = other.arrived.load();
    if (!is_reached(arrived, step_)) sleep_on(other.arrived, arrived);
    other.num_waiting.fetch_sub(1);
    if (has_arrived(rank)) return;
    check_for_end();
  }
}

std::vector<int> SharedChannel::late_ranks() const {
  std::vector<int> late;
  for (int rank = 0; rank < size(); ++rank) {
    if (!has_arrived(rank)) late.push_back(rank);
  }
  return late;
}

void SharedChannel::check_for_end() const {
  if (const auto failure = arena_->failure()) throw_failure(*failure);
  for (const int rank : late_ranks()) {
    // It may have arrived as its last act.
    if (!arena_->is_gone(rank) || has_arrived(rank)) continue;
    fail({.kind = FailureKind::kPeer,
          .text = fmt::format("rank {} ended or crashed; look for its first "
                              "error",
                              arena_->job_rank(rank))});
  }
  if (end_.is_closed()) throw PeerError("this rank has left the group");
  if (end_.is_job_lost()) {
    fail({.kind = FailureKind::kPeer,
          .text = "another rank has failed and the launcher ends the job; look "
                  "for the first error of the other ranks"});
  }
  if (base::monotonic_ns() < deadline_ns_) return;
  auto late = late_ranks();
  if (late.empty()) return;
  for (int& rank : late) rank = arena_->job_rank(rank);
  fail({.kind = FailureKind::kTimeout,
        .text = fmt::format(
            "rank(s) {} did not arrive within {}; the launcher's report names "
            "the rank that stalls; --timeout SECONDS, "
            "TORCH_DISTRIBUTED_TIMEOUT or NCCL_TIMEOUT raise the limit",
            base::list_of(late),
            base::duration_text(base::seconds_between(0, wait_.timeout_ns)))});
}

void SharedChannel::fail(const Failure& failure) const {
  throw_failure(arena_->record_failure(failure));
}

}  // namespace lockstep::comm
