// A TCP store: a server that clients of libtorch's TCPStore, in C++ and Python,
// use as their own.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/net/store_engine.h"

namespace lockstep::net {

enum class Admission {
  kOwnUser,   // connections of this machine whose socket is this user's
  kEveryone,  // who reaches the port
};

struct StoreServerConfig {
  StoreLimits limits = {};
  Admission admission = Admission::kOwnUser;
  uid_t own_user = geteuid();
  std::string secret = {};  // see StoreEngineConfig
};

// Serves on its own thread, with all signals blocked there, until its
// destruction, which closes all connections. No client can block another one,
// and nothing that a client sends ends the server.
class StoreServer {
 public:
  // `listener` is a non-blocking socket that listens; it must outlive the
  // server, which leaves it open. Throws IoError.
  StoreServer(const base::FileDescriptor& listener, StoreServerConfig config);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Why clients lost their connections, since the last call: one line per
  // reason. Thread-safe.
  std::vector<std::string> take_notices();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace lockstep::net
