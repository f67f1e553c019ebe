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

}  // namespace lockstep::testing
