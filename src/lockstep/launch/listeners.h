// Who uses a TCP port, from the kernel's tables under /proc.
#pragma once

#include <optional>

#include "lockstep/launch/processes.h"

namespace lockstep::launch {

// The process that listens on the port; no value when nobody does or when it
// belongs to another user.
std::optional<ProcessInfo> find_port_holder(int port);

}  // namespace lockstep::launch
