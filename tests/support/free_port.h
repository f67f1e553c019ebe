// A port for one test.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "lockstep/base/files.h"

namespace lockstep::testing {

// One that nobody uses now.
inline std::string free_port() {
  const base::FileDescriptor listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  bind(listener.get(), any, length);
  getsockname(listener.get(), any, &length);
  return std::to_string(ntohs(address.sin_port));
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
