// A port for one test.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep::testing {

// One that nobody uses now. Who listens there later finds it free: the kernel
// gives it to nobody that asks for any port, and other tests begin their search
// elsewhere.
inline std::string free_port() {
  constexpr int kFirst = 10000;
  int end = 32768;  // of the ports that nobody gets unasked
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> end;
  const int count = end > kFirst ? end - kFirst : 1;
  static int tries = 0;
  while (tries < count) {
    // Processes that follow one another are far apart.
    const int port = kFirst + (getpid() * 211 + tries++) % count;
    const base::FileDescriptor listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address),
             sizeof(address)) == 0) {
      return std::to_string(port);
    }
  }
  throw IoError("no port is free");
}

// One that this process listens at.
class ListeningPort {
 public:
  ListeningPort() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    bind(listener_.get(), any, length);
    listen(listener_.get(), 1);
    getsockname(listener_.get(), any, &length);
    number_ = ntohs(address.sin_port);
  }

  int number() const { return number_; }

 private:
  base::FileDescriptor listener_;
  int number_ = 0;
};

}  // namespace lockstep::testing
