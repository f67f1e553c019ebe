// The host's side: serves the launchers of a job's nodes.
#pragma once

#include <chrono>
#include <memory>

#include "lockstep/base/files.h"
#include "lockstep/nodes/handshake.h"
#include "lockstep/nodes/refusal_log.h"
#include "lockstep/nodes/rounds.h"

namespace lockstep::nodes {

struct NodeServerConfig {
  RoundsConfig rounds = {};
  JobIdentity job = {};
  // Connections that have not proved that they know the job's key; at least two
  // per node are allowed. When one more comes, the oldest is closed.
  size_t max_strangers = 256;
  std::chrono::milliseconds handshake_timeout{5000};
  // How long the end waits for the last words to arrive.
  std::chrono::milliseconds farewell{5000};
};

// Serves on its own thread, with all signals blocked there, until its
// destruction. Nothing that a connection sends ends it.
class NodeServer {
 public:
  // A non-blocking socket that listens. Throws IoError.
  NodeServer(base::FileDescriptor listener, NodeServerConfig config);
  ~NodeServer();
  NodeServer(const NodeServer&) = delete;
  NodeServer& operator=(const NodeServer&) = delete;

  // Which connections were refused.
  RefusalLog& refusals();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace lockstep::nodes
