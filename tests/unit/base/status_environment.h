// The environment of a worker whose status this reader reads.
#pragma once

#include <string>

#include "lockstep/base/status.h"

namespace lockstep::testing {

inline base::Environment environment_of(const base::StatusReader& reader) {
  return {{"LOCKSTEP_STATUS_FD", std::to_string(reader.fd())}};
}

}  // namespace lockstep::testing
