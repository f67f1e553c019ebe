// MASTER_PORT: a port that belongs to one job for its whole life.
#pragma once

#include <string>

#include "lockstep/base/files.h"

namespace lockstep {

// Holds a port by a bound socket that does not listen. The kernel gives the
// port to nobody else who asks for any free one, while a program that sets
// SO_REUSEADDR, as every TCP store of c10d does, can listen there by name.
class PortReservation {
 public:
  // Any free port. Throws IoError when there is none.
  static PortReservation any();

  // This very port. Throws ConfigError, naming the port, its holder where the
  // system shows it, and the fix, when the port is taken.
  static PortReservation at(int port);

  int port() const { return port_; }

 private:
  PortReservation(FileDescriptor socket, int port);

  FileDescriptor socket_;
  int port_;
};

// Throws ConfigError when the address is not one of this machine.
void check_local_address(const std::string& address);

}  // namespace lockstep
