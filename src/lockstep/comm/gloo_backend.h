// Gloo, the CPU transport inside libtorch.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <optional>
#include <string>

#include "lockstep/base/status.h"
#include "lockstep/comm/place.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace lockstep::comm {

struct GlooConfig {
  std::string name = {};                 // Distinguishes the groups of one job.
  std::chrono::milliseconds timeout{0};  // Per collective.
  // For two ranks to connect once both are there; 0: Gloo's own, five times
  // the timeout.
  std::chrono::milliseconds connect_timeout{0};
  // Interfaces to use, comma-separated (GLOO_SOCKET_IFNAME). Unset: `address`;
  // gloo's own choice, the host's name, is often a loopback address.
  std::optional<std::string> interfaces = {};
  std::string address = "127.0.0.1";
  // Note the collectives of this group on the status page.
  std::optional<base::StatusWriter> status = {};
};

// Connects to every other rank before it returns.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(
    const c10::intrusive_ptr<c10d::Store>& store, const Place& place,
    const GlooConfig& config);

}  // namespace lockstep::comm
