// How launcher and workers agree to replace a rank that died, while the others
// keep their state in memory (lockstep run --recover memory).
//
// Lies in the reserved part of the status page (base/status.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "lockstep/base/environment.h"

namespace lockstep::base {

struct RecoveryPage {
  static constexpr int kOffset = 4032;  // In the status page.

  std::atomic<int32_t> generation;  // Written by the launcher.
  std::atomic<int32_t> is_ready;    // Written by the worker.
};

// The launcher's side.
class RecoveryReader {
 public:
  // The descriptor of a StatusReader.
  explicit RecoveryReader(int status_fd);

  // The worker holds a state that it can hand to a new rank.
  bool is_ready() const;
  // Tells the worker that ranks which died are being replaced.
  void announce(int generation) const;

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

 private:
  std::shared_ptr<RecoveryPage> page_;
};

}  // namespace lockstep::base
