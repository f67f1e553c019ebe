#include "lockstep/net/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(Address, NumbersAreReadAsAddresses) {
  const auto four = resolve("127.0.0.1", 80).addresses;
  ASSERT_EQ(four.size(), 1u);
  EXPECT_EQ(four[0].family(), AF_INET);
  EXPECT_EQ(four[0].port(), 80);
  EXPECT_TRUE(four[0].is_loopback());
  const auto six = resolve("::1", 8080).addresses;
  ASSERT_EQ(six.size(), 1u);
  EXPECT_EQ(six[0].family(), AF_INET6);
  EXPECT_TRUE(six[0].is_loopback());
  EXPECT_FALSE(resolve("192.0.2.1", 1).addresses.at(0).is_loopback());
}

TEST(Address, AnUnknownNameIsSaid) {
  EXPECT_FALSE(resolve("no.such.host.invalid", 1).error.empty());
  EXPECT_THROW(resolve_master("no.such.host.invalid", 1), ConfigError);
}

TEST(Address, APortWithAListenerCannotBeTakenOver) {
  const auto address = resolve("127.0.0.1", 0).addresses.at(0);
  const FileDescriptor first = listen_at(address, PortUse::kExclusive);
  ASSERT_TRUE(first);
  const int port = local_address_of(first.get()).port();
  for (const char* host : {"127.0.0.1", "0.0.0.0", "::"}) {
    EXPECT_FALSE(
        listen_at(resolve(host, port).addresses.at(0), PortUse::kReuse))
        << host;
  }
}

}  // namespace
}  // namespace lockstep
