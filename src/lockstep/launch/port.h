// MASTER_ADDR and MASTER_PORT: the socket of a job's store, for the job's whole
// life.
#pragma once

#include <string>

#include "lockstep/base/files.h"

namespace lockstep::launch {

// From where a store is reached.
enum class Reach { kThisMachine, kOtherMachines };

// Listens from its construction on, at one address of this machine (or at every
// one: net::addresses_for_others()). Nobody else can listen there, and
// connections wait until the store serves them.
class StoreSocket {
 public:
  // At any free port. Throws IoError when there is none.
  static StoreSocket any(const std::string& address,
                         Reach reach = Reach::kThisMachine);

  // At this very port. Throws ConfigError, naming the port, its holder where
  // the system shows it, and the fix, when the port is taken.
  static StoreSocket at(const std::string& address, int port,
                        Reach reach = Reach::kThisMachine);

  int port() const { return port_; }
  const base::FileDescriptor& listener() const { return listener_; }

 private:
  explicit StoreSocket(base::FileDescriptor listener);

  base::FileDescriptor listener_;
  int port_;
};

// Throws ConfigError when the address is not one of this machine.
void check_local_address(const std::string& address);

}  // namespace lockstep::launch
