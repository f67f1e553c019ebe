// Signals that ask this process to end wait until its files are removed.
#pragma once

#include <csignal>

#include "lockstep/base/files.h"

namespace lockstep::doctor {

// This process was asked to end by a held signal: the command cleans up, then
// raises it.
struct Interrupted {
  int signal;
};

// Blocks SIGINT, SIGTERM and SIGHUP while it lives. One that was not taken is
// delivered when it ends.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  int fd() const { return events_.get(); }  // Readable when one came.
  int take() const;                         // 0: none came.
  const sigset_t& mask_of_children() const { return children_; }

 private:
  sigset_t before_{};
  sigset_t children_{};
  base::FileDescriptor events_;
};

}  // namespace lockstep::doctor
