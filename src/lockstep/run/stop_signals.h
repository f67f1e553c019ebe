// Signals that save or stop a training, agreed on by all ranks.
#pragma once

#include <cstdint>

#include "lockstep/base/status.h"
#include "lockstep/comm/vote.h"
#include "lockstep/world.h"

namespace lockstep::run {

// What signals ask of the whole training; the strongest of all ranks counts.
enum class StopRequest : int64_t {
  kNone,
  kSave,       // USR1: save and go on.
  kHangUp,     // HUP: save and end, exit code 129.
  kInterrupt,  // The first Ctrl-C: save and end, 130.
  kTerminate,  // TERM: save and end, 143.
};

bool is_stop(StopRequest request);
// 128 + the signal's number.
int exit_code_of(StopRequest request);
const char* signal_text(StopRequest request);

// One at a time in a process. From its making on a USR1 is remembered; the stop
// signals end the process as usual until arm(): before the first step there is
// nothing to save. From then on a second Ctrl-C ends the process at once, and
// so does TERM when the launcher ends the job because another rank has failed:
// nobody is left to agree with.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // USR1 is ignored from here on.
  void arm(const base::StatusWriter& status);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The strongest signal so far; a USR1 is given once.
  StopRequest take();
};

// How long the work between two boundaries takes.
enum class Pace : int64_t { kQuick, kSlow };
Pace pace_of(double seconds);

// The request of all ranks. While work is quick it is posted at one boundary
// and read at the next, so that nobody waits; while it is slow on some rank it
// is read at once, so that a signal costs no further step. Every rank must call
// it equally often.
class AgreedStop {
 public:
  AgreedStop(const World& world, StopSignals& signals)
      : signals_(signals), vote_(world.make_vote()) {}

  // What all ranks agreed on: at the previous call, or at this one.
  StopRequest next(Pace own_pace);
  // After the last next(): leaves no vote in flight.
  void finish() { vote_.read(); }

 private:
  StopSignals& signals_;
  comm::Vote vote_;
  Pace agreed_pace_ = Pace::kSlow;  // Until a boundary shows another one.
};

}  // namespace lockstep::run
