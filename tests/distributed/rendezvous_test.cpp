// What a user sees when the ranks do not find each other.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <torch/torch.h>
#include <unistd.h>

#include "lockstep/base/environment.h"
#include "lockstep/error.h"
#include "lockstep/world.h"
#include "support/messages.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::expect_in;
using testing::run_processes;

// Joins with some variables changed and returns the error's text.
template <typename Expected>
std::string error_when_joining(
    const std::map<std::string, std::string>& changes) {
  base::Environment environment = base::process_environment();
  for (const auto& [name, value] : changes) environment[name] = value;
  try {
    World::from_environment({.device = DeviceChoice::kCpu}, environment);
    ADD_FAILURE() << "joined";
    return "";
  } catch (const Expected& error) {
    return error.what();
  }
}

int rank_from_environment() { return std::atoi(std::getenv("RANK")); }

TEST(Rendezvous, TwoProcessesWithOneRankAreNamed) {
  run_processes({.size = 3}, [] {
    // The third one claims to be rank 1 too; the second to connect gets the
    // error.
    if (rank_from_environment() == 0) {
      const auto text = error_when_joining<TimeoutError>(
          {{"TORCH_DISTRIBUTED_TIMEOUT", "15"}});
      expect_in(text, "rank(s) 2");
      return;
    }
    try {
      base::Environment environment = base::process_environment();
      environment["RANK"] = "1";
      environment["TORCH_DISTRIBUTED_TIMEOUT"] = "9.5";
      World::from_environment({.device = DeviceChoice::kCpu}, environment);
      ADD_FAILURE() << "joined";
    } catch (const ConfigError& error) {
      expect_in(error.what(), "two processes claim rank 1 of 3");
    } catch (const PeerError& error) {
      expect_in(error.what(), "rank(s) 2");  // the one that came first
    }
  });
}

TEST(Rendezvous, ASecondWorldInOneProcessIsSaid) {
  run_processes({.size = 2}, [] {
    const WorldConfig config{.device = DeviceChoice::kCpu};
    const World first = World::from_environment(config);
    try {
      World::from_environment(config);
      ADD_FAILURE() << "joined";
    } catch (const ConfigError& error) {
      expect_in(error.what(), "called twice in this process");
    }
    first.barrier();
  });
}

TEST(Rendezvous, MissingPeersAreNamed) {
  run_processes({.size = 2}, [] {
    // Both wait for two that never come. Rank 0 gives up first or last: then
    // the other one has lost the store, and names them all the same.
    const auto text = error_when_joining<PeerError>(
        {{"WORLD_SIZE", "4"}, {"TORCH_DISTRIBUTED_TIMEOUT", "9.5"}});
    expect_in(text, "for rank(s) 2, 3 to connect to");
    if (rank_from_environment() == 0) {
      expect_in(text, "rank 0 of 4 waited 9.5 s");
      expect_in(text, "--timeout");
    }
  });
}

TEST(Rendezvous, DifferentWorldSizesAreNamed) {
  run_processes({.size = 2}, [] {
    const bool other = rank_from_environment() == 1;
    const auto text = error_when_joining<ConfigError>(
        {{"WORLD_SIZE", other ? "3" : "2"},
         {"LOCAL_WORLD_SIZE", other ? "3" : "2"}});
    expect_in(text, other ? "rank 1 has WORLD_SIZE=3 but rank 0"
                          : "rank 0 has WORLD_SIZE=2 but rank 1");
  });
}

TEST(Rendezvous, NobodyAtTheAddressIsSaid) {
  const auto text =
      error_when_joining<TimeoutError>({{"RANK", "1"},
                                        {"WORLD_SIZE", "2"},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", "9"},
                                        {"TORCH_DISTRIBUTED_TIMEOUT", "0.5"}});
  expect_in(text, "could not connect to 127.0.0.1:9 within 500 ms");
}

TEST(Rendezvous, AnUnknownHostIsSaid) {
  const auto text =
      error_when_joining<ConfigError>({{"RANK", "1"},
                                       {"WORLD_SIZE", "2"},
                                       {"MASTER_ADDR", "no.such.host.invalid"},
                                       {"MASTER_PORT", "9"}});
  expect_in(text, "cannot resolve MASTER_ADDR='no.such.host.invalid'");
}

// The name of a pod appears when it starts.
TEST(Rendezvous, TheNameOfAPodIsWaitedFor) {
  const auto text =
      error_when_joining<TimeoutError>({{"RANK", "1"},
                                        {"WORLD_SIZE", "2"},
                                        {"LOCAL_RANK", ""},
                                        {"LOCAL_WORLD_SIZE", ""},
                                        {"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                        {"MASTER_ADDR", "no.such.pod.invalid"},
                                        {"MASTER_PORT", "9"},
                                        {"TORCH_DISTRIBUTED_TIMEOUT", "0.5"}});
  expect_in(text, "could not resolve MASTER_ADDR='no.such.pod.invalid' within");
  expect_in(text, "kubectl get pods,services");
}

TEST(Rendezvous, APortThatIsTakenIsSaid) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  ASSERT_EQ(
      bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  ASSERT_EQ(listen(listener, 1), 0);
  socklen_t length = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const auto text = error_when_joining<ConfigError>(
      {{"RANK", "0"},
       {"WORLD_SIZE", "2"},
       {"MASTER_ADDR", "127.0.0.1"},
       {"MASTER_PORT", std::to_string(ntohs(address.sin_port))}});
  expect_in(text, std::to_string(ntohs(address.sin_port)));
  expect_in(text, "leave --master-port and MASTER_PORT out");
  close(listener);
}

TEST(Rendezvous, AnInterfaceThatIsNotThereIsSaid) {
  run_processes({.size = 2}, [] {
    const auto text =
        error_when_joining<ConfigError>({{"GLOO_SOCKET_IFNAME", "nope0"}});
    expect_in(text, "no network interface 'nope0'; it has: ");
    expect_in(text, "lo");
  });
}

TEST(Rendezvous, AnInterfaceByNameIsUsed) {
  run_processes({.size = 2}, [] {
    base::Environment environment = base::process_environment();
    environment["GLOO_SOCKET_IFNAME"] = "lo";
    const auto world =
        World::from_environment({.device = DeviceChoice::kCpu}, environment);
    EXPECT_EQ(world.reduce(int64_t{1}, ReduceOp::kSum), 2);
  });
}

}  // namespace
}  // namespace lockstep
