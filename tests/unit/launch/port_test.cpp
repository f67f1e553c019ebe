#include "lockstep/launch/port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/launch/listeners.h"
#include "lockstep/net/address.h"

namespace lockstep {
namespace {

// As a TCP store does: SO_REUSEADDR, all addresses.
base::FileDescriptor listen_at(int port) {
  base::FileDescriptor server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(server.get(), reinterpret_cast<sockaddr*>(&address),
           sizeof(address)) != 0 ||
      listen(server.get(), 8) != 0) {
    return {};
  }
  return server;
}

constexpr const char* kHere = "127.0.0.1";

int free_port() { return launch::StoreSocket::any(kHere).port(); }

TEST(StoreSocket, NeverGivesOnePortTwice) {
  std::vector<launch::StoreSocket> held;
  std::set<int> ports;
  for (int i = 0; i < 200; ++i) {
    held.push_back(launch::StoreSocket::any(kHere));
    ports.insert(held.back().port());
  }
  EXPECT_EQ(ports.size(), held.size());
}

// The attack of one who waits for a job's port.
TEST(StoreSocket, CannotBeTakenOver) {
  const launch::StoreSocket chosen = launch::StoreSocket::any(kHere);
  EXPECT_FALSE(listen_at(chosen.port()));
  const launch::StoreSocket named = launch::StoreSocket::at(kHere, free_port());
  EXPECT_FALSE(listen_at(named.port()));
}

TEST(StoreSocket, ListensAtItsAddressAlone) {
  const launch::StoreSocket socket = launch::StoreSocket::any(kHere);
  EXPECT_TRUE(net::local_address_of(socket.listener().get()).is_loopback());
}

TEST(StoreSocket, ATakenPortIsRefusedWithItsHolder) {
  const int port = free_port();
  const base::FileDescriptor server = listen_at(port);
  ASSERT_TRUE(server);
  try {
    launch::StoreSocket::at(kHere, port);
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("port " + std::to_string(port)), std::string::npos);
    EXPECT_NE(text.find("process " + std::to_string(getpid())),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("a free one is chosen"), std::string::npos);
  }
}

TEST(StoreSocket, OfAnotherJobIsTaken) {
  const launch::StoreSocket other = launch::StoreSocket::any(kHere);
  EXPECT_THROW(launch::StoreSocket::at(kHere, other.port()), ConfigError);
}

TEST(Listeners, FindTheProcessBehindAPort) {
  const int port = free_port();
  EXPECT_FALSE(launch::find_port_holder(port));
  const base::FileDescriptor server = listen_at(port);
  const auto holder = launch::find_port_holder(port);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->pid, getpid());
}

TEST(LocalAddress, OnlyAddressesOfThisMachinePass) {
  EXPECT_NO_THROW(launch::check_local_address("127.0.0.1"));
  EXPECT_NO_THROW(launch::check_local_address("localhost"));
  EXPECT_NO_THROW(launch::check_local_address("0.0.0.0"));
  EXPECT_THROW(launch::check_local_address("192.0.2.1"), ConfigError);
}

}  // namespace
}  // namespace lockstep
