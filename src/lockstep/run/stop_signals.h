// Signals that save or stop a training, agreed on by all ranks.
#pragma once

#include <cstdint>

#include "lockstep/base/status.h"
#include "lockstep/comm/vote.h"
#include "lockstep/world.h"

namespace lockstep::run {

// What ends a training before its last step, or only saves it; the strongest
// over all ranks wins.
enum class StopRequest : int64_t {
  kNone,
  kSave,       // USR1: save and continue.
  kPlanned,    // --stop_after_steps: save and end, exit code 0.
  kHangUp,     // HUP: save and end, exit code 129.
  kInterrupt,  // The first Ctrl-C: save and end, 130.
  kTerminate,  // TERM: save and end, 143.
};

bool is_stop(StopRequest request);
// 128 + the signal's number; 0 for kPlanned.
int exit_code_of(StopRequest request);
// "SIGTERM", "--stop_after_steps"
const char* request_text(StopRequest request);

// At most one per process. USR1 is recorded from construction on; stop signals
// end the process as usual until arm(), as there is nothing to save before the
// first step. After arm() a second Ctrl-C ends the process at once, and so does
// a TERM from a launcher that ends the job because another rank failed: ranks
// can no longer agree.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // USR1 is ignored from here on.
  void arm(const base::StatusWriter& status);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The strongest signal so far; a USR1 is returned once.
  StopRequest take();
};

// Whether the work between two boundaries takes long.
enum class Pace : int64_t { kQuick, kSlow };
Pace pace_of(double seconds);

// Agrees on a request over all ranks. While work is fast, a vote is posted at
// one boundary and read at the next, so that no rank waits; while it is slow on
// some rank, it is read at once, so that a signal costs no extra step. Every
// rank must call it equally often.
class AgreedStop {
 public:
  AgreedStop(const World& world, StopSignals& signals)
      : signals_(signals), vote_(world.make_vote()) {}

  // The agreed request, of the previous call or of this one.
  StopRequest next(Pace own_pace);
  // After the last next(): leaves no vote in flight.
  void finish() { vote_.read(); }

 private:
  StopSignals& signals_;
  comm::Vote vote_;
  Pace agreed_pace_ = Pace::kSlow;  // Until the first boundary.
};

}  // namespace lockstep::run
