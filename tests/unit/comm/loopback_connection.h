// A TCP connection of this process to itself.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "lockstep/base/files.h"
#include "lockstep/net/address.h"

namespace lockstep::testing {

class LoopbackConnection {
 public:
  LoopbackConnection() {
    const auto any = net::resolve("127.0.0.1", 0).addresses.at(0);
    const auto listener = net::listen_at(any, net::PortUse::kExclusive);
    const auto address = net::local_address_of(listener.get());
    caller_ = base::FileDescriptor(
        socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(caller_.get(), address.get(), address.size), 0);
    called_ = base::FileDescriptor(
        accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(called_);
  }

  // What one end says arrives at the other.
  bool is_open() const {
    char byte = 'x';
    return send(caller_.get(), &byte, 1, MSG_NOSIGNAL) == 1 &&
           recv(called_.get(), &byte, 1, 0) == 1;
  }

  // Waits for it.
  bool ends() const {
    char byte = 0;
    return recv(called_.get(), &byte, 1, 0) <= 0;
  }

 private:
  base::FileDescriptor caller_;
  base::FileDescriptor called_;
};

}  // namespace lockstep::testing
