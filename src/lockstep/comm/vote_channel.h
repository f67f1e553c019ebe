// The collective behind a vote. Private to comm/.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/base/status.h"
#include "lockstep/comm/vote.h"

namespace lockstep::comm {

struct Vote::Channel {
  c10::intrusive_ptr<c10d::Backend> backend;  // Null in a world of one.
  int rank = 0;
  base::StatusWriter status;
};

}  // namespace lockstep::comm
