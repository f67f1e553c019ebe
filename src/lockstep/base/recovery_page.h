// How launcher and workers agree to replace a rank that died, while the others
// keep their state in memory (lockstep run --recover memory).
//
// Lies in the reserved part of the status page (base/status.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "lockstep/base/environment.h"

namespace lockstep::base {

struct RecoveryPage {
  static constexpr int kOffset = 4032;  // In the status page.

  // Written by the launcher, until the worker sets kOver in it: one word, so
  // that a rank is either replaced before a worker's end or not at all.
  std::atomic<int32_t> generation;
  std::atomic<int32_t> is_ready;  // Written by the worker.
  std::atomic<int32_t> asks_all;  // The worker's note to itself.
  // Written by the launcher: a new generation will come, however long it takes.
  std::atomic<int32_t> is_suspended;
  // Written by the launcher: grows when the worker shall let go of the others.
  std::atomic<uint32_t> interrupts;

  static constexpr int32_t kOver = 1 << 30;
};

// The launcher's side.
class RecoveryReader {
 public:
  // The descriptor of a StatusReader.
  explicit RecoveryReader(int status_fd);

  // The worker holds a state that it can hand to a new rank.
  bool is_ready() const;
  // The worker needs no other rank any more.
  bool is_over() const;
  // Tells the worker that ranks which died are being replaced. False: it is
  // over for this one.
  bool announce(int generation) const;
  // Tells the worker to let go of the other ranks, which are about to change,
  // and to wait for the next generation.
  void suspend() const;

 private:
  std::shared_ptr<RecoveryPage> page_;
};

// The worker's side. Copies refer to the same page.
class RecoveryWriter {
 public:
  RecoveryWriter();  // A private page: nothing is ever replaced.

  // The page named in LOCKSTEP_STATUS_FD; a private one when there is none.
  static RecoveryWriter from_environment(const Environment& environment);

  void set_ready();
  bool is_ready() const;
  int generation() const;
  // This rank's next World::reform() asks all ranks to connect anew, though
  // none has died.
  void ask_all();
  bool take_request_to_all();
  // This rank needs no other one any more: none is replaced from here on.
  // False: some have been since `generation`.
  bool end(int generation);
  bool is_suspended() const;
  // How often the launcher has told this worker to let go.
  uint32_t interrupts() const;
  // Waits until that is no longer `seen`, or for a while. Thread-safe.
  void wait_for_interrupt(uint32_t seen, std::chrono::milliseconds limit) const;
  // Ends such waits of this process early.
  void wake_waiting() const;

 private:
  std::shared_ptr<RecoveryPage> page_;
};

}  // namespace lockstep::base
