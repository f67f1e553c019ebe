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

TEST(Address, OfIpv4ThroughIpv6IsShownAsIpv4) {
  const auto mapped = net::resolve("::ffff:127.0.1.1", 80).addresses.at(0);
  EXPECT_EQ(mapped.text(), "127.0.1.1");
  EXPECT_TRUE(mapped.is_loopback());
  EXPECT_FALSE(
      net::resolve("::ffff:192.0.2.1", 80).addresses.at(0).is_loopback());
}

TEST(Address, ForOthersIsNoLoopbackOneUnlessThatIsMeant) {
  EXPECT_TRUE(net::is_loopback_host("localhost"));
  EXPECT_TRUE(net::is_loopback_host("127.0.1.1"));
  EXPECT_TRUE(net::is_loopback_host("::1"));
  EXPECT_FALSE(net::is_loopback_host("192.0.2.1"));
  EXPECT_FALSE(net::is_loopback_host("node1"));
  const auto meant = net::addresses_for_others("127.0.0.1", 80);
  ASSERT_EQ(meant.size(), 1u);
  EXPECT_EQ(meant[0].text(), "127.0.0.1");
  EXPECT_EQ(net::addresses_for_others("192.0.2.1", 80).at(0).text(),
            "192.0.2.1");
  EXPECT_TRUE(net::any_address(80).is_any());
  EXPECT_TRUE(net::addresses_for_others("no.such.host.invalid", 1).empty());
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
