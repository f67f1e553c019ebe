#include "lockstep/net/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(Address, NumbersAreReadAsAddresses) {
  const auto four = net::resolve("127.0.0.1", 80).addresses;
  ASSERT_EQ(four.size(), 1u);
  EXPECT_EQ(four[0].family(), AF_INET);
  EXPECT_EQ(four[0].port(), 80);
  EXPECT_TRUE(four[0].is_loopback());
  const auto six = net::resolve("::1", 8080).addresses;
  ASSERT_EQ(six.size(), 1u);
  EXPECT_EQ(six[0].family(), AF_INET6);
  EXPECT_TRUE(six[0].is_loopback());
  EXPECT_FALSE(net::resolve("192.0.2.1", 1).addresses.at(0).is_loopback());
}

TEST(Address, AnUnknownNameIsSaid) {
  EXPECT_FALSE(net::resolve("no.such.host.invalid", 1).error.empty());
  EXPECT_THROW(net::resolve_master("no.such.host.invalid", 1), ConfigError);
}

TEST(Address, APortWithAListenerCannotBeTakenOver) {
  const auto address = net::resolve("127.0.0.1", 0).addresses.at(0);
  const base::FileDescriptor first =
      net::listen_at(address, net::PortUse::kExclusive);
  ASSERT_TRUE(first);
  const int port = net::local_address_of(first.get()).port();
  for (const char* host : {"127.0.0.1", "0.0.0.0", "::"}) {
    EXPECT_FALSE(net::listen_at(net::resolve(host, port).addresses.at(0),
                                net::PortUse::kReuse))
        << host;
  }
}

}  // namespace
}  // namespace lockstep
