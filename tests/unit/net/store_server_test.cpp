#include "lockstep/net/store_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "lockstep/error.h"
#include "lockstep/net/address.h"
#include "lockstep/net/store_client.h"
#include "support/process.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

struct Hosted {
  explicit Hosted(net::StoreServerConfig config = {})
      : listener(net::listen_at(net::resolve("127.0.0.1", 0).addresses.at(0),
                                net::PortUse::kExclusive)),
        server(listener, std::move(config)) {}

  int port() const { return net::local_address_of(listener.get()).port(); }

  std::unique_ptr<net::StoreClient> connect(
      std::optional<std::string> secret = std::nullopt) const {
    auto client = net::StoreClient::connect({.port = port(),
                                             .search_timeout = 10s,
                                             .reply_timeout = 10s,
                                             .secret = std::move(secret)});
    EXPECT_NE(client, nullptr);
    return client;
  }

  base::FileDescriptor connect_silently() const {
    const net::SocketAddress address = net::local_address_of(listener.get());
    base::FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), address.get(), address.size), 0);
    return client;
  }

  base::FileDescriptor listener;
  net::StoreServer server;
};

// Waits for it.
bool is_closed(const base::FileDescriptor& socket) {
  char byte = 0;
  return recv(socket.get(), &byte, 1, 0) <= 0;
}

TEST(StoreServer, ServesAllRequestsOfAClient) {
  const Hosted store;
  const auto a = store.connect();
  const auto b = store.connect();
  a->set("k", "v");
  b->wait({"k"}, 60s);
  EXPECT_EQ(b->get("k"), "v");
  b->append("k", "w");
  EXPECT_EQ(b->get("k"), "vw");
  EXPECT_EQ(a->add("n", 2), 2);
  EXPECT_EQ(b->add("n", -3), -1);
  EXPECT_EQ(a->compare_set("c", "", "x"), "x");
  EXPECT_TRUE(b->check({"k", "c"}));
  EXPECT_FALSE(b->check({"k", "none"}));
  a->multi_set({"m1", "m2"}, {"1", "2"});
  b->wait({"m1", "m2"}, 60s);
  EXPECT_EQ(b->multi_get({"m2", "m1"}), (net::StoreClient::Keys{"2", "1"}));
  EXPECT_EQ(a->count_keys(), 5);
  EXPECT_EQ(a->list_keys(),
            (net::StoreClient::Keys{"c", "k", "m1", "m2", "n"}));
  EXPECT_TRUE(a->erase("k"));
  EXPECT_FALSE(b->erase("k"));
  a->push("q", "e");
  b->wait({"q"}, 60s);
  EXPECT_EQ(b->queue_length("q"), 1);
  EXPECT_EQ(b->pop("q"), "e");
  EXPECT_EQ(b->pop("q"), std::nullopt);
}

TEST(StoreServer, WaitingEndsWithTheKey) {
  const Hosted store;
  const auto a = store.connect();
  const auto b = store.connect();
  std::thread waiter([&] { a->wait({"x", "y"}, 60s); });
  b->set("x", "");
  b->set("y", "");
  waiter.join();
  EXPECT_THROW(a->wait({"never"}, 10ms), TimeoutError);
  EXPECT_EQ(a->add("n", 1), 1) << "of use after a timeout";
}

TEST(StoreServer, LargeValuesComeThrough) {
  const Hosted store;
  const auto a = store.connect();
  const auto b = store.connect();
  const std::string value(size_t{8} << 20, 'x');
  a->set("big", value);
  a->set("big2", value);
  b->wait({"big2"}, 60s);
  // Not EXPECT_EQ, which would print both.
  EXPECT_TRUE((b->multi_get({"big", "big2"}) ==
               std::vector<std::string>{value, value}));
}

TEST(StoreServer, TwoHundredSilentConnectionsDelayNobody) {
  const Hosted store;
  std::vector<base::FileDescriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(store.connect_silently());
  const double begin = testing::now_seconds();
  const auto client = store.connect();
  client->set("k", "v");
  EXPECT_EQ(client->get("k"), "v");
  // Far below the time after which silent ones are dropped.
  EXPECT_LT(testing::now_seconds() - begin, 4);
}

TEST(StoreServer, SilentConnectionsAreDropped) {
  const Hosted store({.limits = {.handshake_timeout = 50ms}});
  const base::FileDescriptor silent = store.connect_silently();
  const base::FileDescriptor slow = store.connect_silently();
  EXPECT_EQ(write(slow.get(), "\0\xCE", 2), 2);
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(slow));
  const auto client = store.connect();
  client->set("k", "v");
}

TEST(StoreServer, TheOldestSilentConnectionMakesRoom) {
  const Hosted store(
      {.limits = {.max_silent_connections = 2, .handshake_timeout = 60s}});
  const base::FileDescriptor first = store.connect_silently();
  const base::FileDescriptor second = store.connect_silently();
  const auto client = store.connect();
  EXPECT_TRUE(is_closed(first));
  client->set("k", "v");
  EXPECT_EQ(client->get("k"), "v");
}

TEST(StoreServer, ARequestThatStopsInTheMiddleDelaysNobody) {
  const Hosted store;
  const base::FileDescriptor half = store.connect_silently();
  std::string bytes = net::encode_request({.query = net::StoreQuery::kValidate,
                                           .number = net::kStoreMagic}) +
                      net::encode_request({.query = net::StoreQuery::kSet,
                                           .keys = {"/k"},
                                           .values = {"value"}});
  bytes.pop_back();
  ASSERT_EQ(write(half.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  const auto client = store.connect();
  EXPECT_FALSE(client->check({"k"}));
  ASSERT_EQ(write(half.get(), "e", 1), 1);
  client->wait({"k"}, 60s);
  EXPECT_EQ(client->get("k"), "value");
}

TEST(StoreServer, NonsenseClosesOneConnectionAndIsSaid) {
  Hosted store;
  const auto client = store.connect();
  const base::FileDescriptor other = store.connect_silently();
  ASSERT_EQ(write(other.get(), "GET / HTTP/1.1\r\n\r\n", 18), 18);
  EXPECT_TRUE(is_closed(other));
  client->set("k", "v");
  EXPECT_EQ(client->get("k"), "v");
  const auto notices = store.server.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("closed a connection"), std::string::npos);
}

TEST(StoreServer, ConnectionsAreBounded) {
  Hosted store({.limits = {.max_connections = 3}});
  const auto a = store.connect();
  const auto b = store.connect();
  const auto c = store.connect();
  EXPECT_TRUE(is_closed(store.connect_silently()));
  c->set("k", "v");
  a->wait({"k"}, 60s);
  ASSERT_EQ(store.server.take_notices().size(), 1u);
}

// Ten requests of 90 bytes ask for 80 MB, and nobody reads them.
TEST(StoreServer, RepliesThatNobodyTakesAreBounded) {
  const Hosted store({.limits = {.max_reply_bytes = size_t{9} << 20}});
  const auto client = store.connect();
  client->set("k", std::string(size_t{8} << 20, 'x'));
  EXPECT_EQ(client->count_keys(), 1);  // a reply: the value has arrived
  const base::FileDescriptor greedy = store.connect_silently();
  std::string bytes = net::encode_request(
      {.query = net::StoreQuery::kValidate, .number = net::kStoreMagic});
  for (int i = 0; i < 10; ++i) {
    bytes +=
        net::encode_request({.query = net::StoreQuery::kGet, .keys = {"/k"}});
  }
  ASSERT_EQ(write(greedy.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  std::string got(size_t{1} << 20, '\0');
  size_t total = 0;
  for (ssize_t count = 1; count > 0; total += static_cast<size_t>(count)) {
    count = recv(greedy.get(), got.data(), got.size(), 0);
    if (count < 0) break;
  }
  EXPECT_LT(total, size_t{20} << 20);
  EXPECT_EQ(client->get("k").size(), size_t{8} << 20);
}

TEST(StoreServer, ConnectionsOfOtherUsersAreRefused) {
  Hosted store({.own_user = geteuid() + 1});
  EXPECT_TRUE(is_closed(store.connect_silently()));
  EXPECT_EQ(store.server.take_notices(),
            std::vector<std::string>{
                "the store refused a connection of another user (uid " +
                std::to_string(geteuid()) + ")"});
}

TEST(StoreServer, OnlyTheSecretOpensReservedKeys) {
  const Hosted store({.secret = "sesame"});
  const auto rank = store.connect("sesame");
  rank->set("lockstep/0/record", "1");
  EXPECT_EQ(rank->get("lockstep/0/record"), "1");
  const auto other = store.connect();
  other->set("mine", "2");
  EXPECT_EQ(other->list_keys(), net::StoreClient::Keys{"mine"});
  EXPECT_THROW(other->get("lockstep/0/record"), PeerError);
  EXPECT_EQ(rank->get("lockstep/0/record"), "1");
}

TEST(StoreServer, AWrongSecretIsRefused) {
  const Hosted store({.secret = "sesame"});
  EXPECT_EQ(net::StoreClient::connect({.port = store.port(),
                                       .search_timeout = 0s,
                                       .reply_timeout = 10s,
                                       .secret = "guess"}),
            nullptr);
}

TEST(StoreServer, ItsEndClosesAllConnections) {
  auto store = std::make_unique<Hosted>();
  const auto client = store->connect();
  store.reset();
  EXPECT_THROW(client->get("k"), PeerError);
}

TEST(StoreClient, NobodyAtThePortIsNoStore) {
  int port = 0;
  {
    const Hosted gone;
    port = gone.port();
  }
  EXPECT_EQ(net::StoreClient::connect({.port = port, .search_timeout = 10ms}),
            nullptr);
}

TEST(StoreClient, AListenerThatIsNoStoreIsSaid) {
  const base::FileDescriptor listener = net::listen_at(
      net::resolve("127.0.0.1", 0).addresses.at(0), net::PortUse::kExclusive);
  const int port = net::local_address_of(listener.get()).port();
  std::thread other([&] {
    for (int i = 0; i < 2; ++i) {
      base::FileDescriptor peer;
      while (!peer) {
        peer =
            base::FileDescriptor(accept4(listener.get(), nullptr, nullptr, 0));
      }
      EXPECT_EQ(write(peer.get(), "220 smtp.example\r\n", 18), 18);
    }
  });
  EXPECT_EQ(net::StoreClient::connect({.port = port, .search_timeout = 0ms}),
            nullptr);
  EXPECT_THROW(net::StoreClient::connect({.port = port, .search_timeout = 10s}),
               PeerError);
  other.join();
}

}  // namespace
}  // namespace lockstep
