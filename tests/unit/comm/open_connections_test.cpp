#include "lockstep/comm/open_connections.h"

#include <gtest/gtest.h>

#include <optional>

#include "unit/comm/loopback_connection.h"

namespace lockstep::comm {
namespace {

using testing::LoopbackConnection;

TEST(OpenConnections, ShutsDownThoseMadeMeanwhile) {
  OpenConnections connections;
  const LoopbackConnection before;
  connections.begin();
  const LoopbackConnection first;
  const LoopbackConnection second;
  connections.end();
  const LoopbackConnection after;
  EXPECT_TRUE(first.is_open());
  connections.shut_down();
  EXPECT_FALSE(first.is_open());
  EXPECT_FALSE(second.is_open());
  EXPECT_TRUE(before.is_open());
  EXPECT_TRUE(after.is_open());
}

TEST(OpenConnections, ShutsDownThoseThatAreThereWhileMoreAreMade) {
  OpenConnections connections;
  const LoopbackConnection before;
  connections.begin();
  const LoopbackConnection first;
  connections.shut_down();
  const LoopbackConnection second;
  EXPECT_FALSE(first.is_open());
  EXPECT_TRUE(second.is_open());
  EXPECT_TRUE(before.is_open());
  connections.end();
  connections.shut_down();
  EXPECT_FALSE(second.is_open());
}

TEST(OpenConnections, LeavesAloneWhatItDoesNotKnow) {
  OpenConnections connections;
  const LoopbackConnection connection;
  connections.shut_down();
  connections.end();
  connections.shut_down();
  EXPECT_TRUE(connection.is_open());
}

TEST(OpenConnections, LeavesAloneWhatItHasForgotten) {
  OpenConnections connections;
  connections.begin();
  const LoopbackConnection first;
  connections.end();
  connections.forget();
  connections.shut_down();
  connections.begin();
  const LoopbackConnection second;
  connections.forget();
  connections.shut_down();
  EXPECT_TRUE(first.is_open());
  EXPECT_TRUE(second.is_open());
}

TEST(OpenConnections, LeavesAloneSocketsThatAreNoTcpConnections) {
  OpenConnections connections;
  connections.begin();
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const base::FileDescriptor first(ends[0]);
  const base::FileDescriptor second(ends[1]);
  connections.end();
  connections.shut_down();
  EXPECT_TRUE(base::write_all(first.get(), "x"));
}

// Descriptors are used again.
TEST(OpenConnections, ANewConnectionInThePlaceOfAClosedOneIsAnother) {
  OpenConnections connections;
  std::optional<LoopbackConnection> connection;
  connections.begin();
  connection.emplace();
  connections.end();
  connection.reset();
  connection.emplace();
  connections.shut_down();
  EXPECT_TRUE(connection->is_open());
}

}  // namespace
}  // namespace lockstep::comm
