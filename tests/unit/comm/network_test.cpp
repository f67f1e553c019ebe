#include "lockstep/comm/network.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

TEST(Network, TheMastersRouteGivesTheAddress) {
  EXPECT_EQ(comm::local_address_towards("127.0.0.1", 29500), "127.0.0.1");
  EXPECT_EQ(comm::local_address_towards("127.0.1.1", 29500), "127.0.0.1");
  EXPECT_TRUE(comm::is_loopback_address("127.0.1.1"));
  EXPECT_TRUE(comm::is_loopback_address("::1"));
  EXPECT_FALSE(comm::is_loopback_address("10.0.0.1"));
}

TEST(Network, AnAddressHasItsInterface) {
  EXPECT_EQ(comm::interface_of_address("127.0.0.1"), "lo");
  EXPECT_EQ(comm::interface_of_address("127.0.1.1"), "lo");
  EXPECT_EQ(comm::interface_of_address("203.0.113.77"), "");
}

TEST(Network, NcclGetsTheInterfaceUnlessItHasOne) {
  const testing::TempDir folder;
  const std::string file = folder.path() / "nccl.conf";
  base::Environment environment = {{"HOME", folder.path()},
                                   {"NCCL_CONF_FILE", file}};
  EXPECT_EQ(comm::nccl_interface("127.0.0.1", environment), "=lo");
  EXPECT_EQ(comm::nccl_interface("203.0.113.77", environment), "");
  std::ofstream(file) << "NCCL_DEBUG=WARN\n# NCCL_SOCKET_IFNAME\n";
  EXPECT_EQ(comm::nccl_interface("127.0.0.1", environment), "=lo");
  std::ofstream(file) << "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME = ib0\n";
  EXPECT_EQ(comm::nccl_interface("127.0.0.1", environment), "");
  environment = {{"NCCL_SOCKET_IFNAME", "eth1"}};
  EXPECT_EQ(comm::nccl_interface("127.0.0.1", environment), "");
}

}  // namespace
}  // namespace lockstep
