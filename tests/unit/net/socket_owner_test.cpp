#include "lockstep/net/socket_owner.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/net/address.h"

namespace lockstep {
namespace {

constexpr uid_t kNobody = 65534;

struct Pair {
  base::FileDescriptor listener;
  base::FileDescriptor client;
  base::FileDescriptor server;
};

base::FileDescriptor accept_from(const base::FileDescriptor& listener) {
  base::FileDescriptor server;
  while (!server) {
    server = base::FileDescriptor(
        accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  return server;
}

base::FileDescriptor connect_to(const net::SocketAddress& address) {
  base::FileDescriptor client(
      socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(client.get(), address.get(), address.size), 0);
  return client;
}

Pair make_pair(const char* listen_host, const char* connect_host) {
  Pair pair;
  pair.listener = net::listen_at(net::resolve(listen_host, 0).addresses.at(0),
                                 net::PortUse::kExclusive);
  const int port = net::local_address_of(pair.listener.get()).port();
  pair.client = connect_to(net::resolve(connect_host, port).addresses.at(0));
  pair.server = accept_from(pair.listener);
  return pair;
}

TEST(SocketOwners, BothEndsAreOfThisUser) {
  const net::SocketOwners owners;
  for (const char* host : {"127.0.0.1", "::1"}) {
    const Pair pair = make_pair(host, host);
    EXPECT_EQ(owners.owner_of_peer(pair.server.get()), geteuid()) << host;
    EXPECT_EQ(owners.owner_of_peer(pair.client.get()), geteuid()) << host;
  }
}

// libtorch's clients use IPv6 sockets for IPv4 addresses.
TEST(SocketOwners, AnIpv6SocketWithAnIpv4AddressIsFound) {
  const net::SocketOwners owners;
  const Pair pair = make_pair("127.0.0.1", "::ffff:127.0.0.1");
  EXPECT_EQ(owners.owner_of_peer(pair.server.get()), geteuid());
  const Pair dual = make_pair("::", "127.0.0.1");
  EXPECT_EQ(owners.owner_of_peer(dual.server.get()), geteuid());
}

// Who connects, writes and closes at once is nobody: the kernel would say root.
TEST(SocketOwners, AClosedEndHasNoOwner) {
  Pair pair = make_pair("127.0.0.1", "127.0.0.1");
  EXPECT_EQ(write(pair.client.get(), "x", 1), 1);
  pair.client.reset();
  EXPECT_FALSE(net::SocketOwners().owner_of_peer(pair.server.get()));
}

TEST(SocketOwners, AnotherUserIsNamed) {
  // Only root can become another user.
  const uid_t user = geteuid() == 0 ? kNobody : geteuid();
  const base::FileDescriptor listener = net::listen_at(
      net::resolve("127.0.0.1", 0).addresses.at(0), net::PortUse::kExclusive);
  const net::SocketAddress address = net::local_address_of(listener.get());
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(done[1]);
    char byte = 0;
    if (setuid(user) != 0) _exit(1);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client, address.get(), address.size) != 0) _exit(1);
    // Until the other side is done.
    _exit(read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(done[0]);
  const base::FileDescriptor server = accept_from(listener);
  EXPECT_EQ(net::SocketOwners().owner_of_peer(server.get()), user);
  close(done[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep
