// A rank that was started to replace another one is killed while it connects:
// the others do not wait for it, and go on with the next one.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "lockstep/base/environment.h"
#include "lockstep/base/recovery_page.h"
#include "lockstep/error.h"
#include "lockstep/world.h"
#include "support/ranks.h"

namespace {

// Gloo listens before it publishes its address; its next call of these
// connects it to another rank.
std::atomic<bool> dies_when_connecting = false;
std::atomic<bool> has_listened = false;

template <typename Function>
Function next_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_network(int socket) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  return domain == AF_INET || domain == AF_INET6;
}

void die_if_connecting(int socket) {
  if (dies_when_connecting && has_listened && is_network(socket)) {
    raise(SIGKILL);
  }
}

}  // namespace

// In place of the C library's, for libtorch too.
extern "C" {

[[gnu::visibility("default")]] int listen(int socket, int count) noexcept {
  if (is_network(socket)) has_listened = true;
  return next_function<int (*)(int, int)>("listen")(socket, count);
}

[[gnu::visibility("default")]] int connect(int socket, const sockaddr* address,
                                           socklen_t size) {
  die_if_connecting(socket);
  return next_function<int (*)(int, const sockaddr*, socklen_t)>("connect")(
      socket, address, size);
}

[[gnu::visibility("default")]] int accept(int socket, sockaddr* address,
                                          socklen_t* size) {
  die_if_connecting(socket);
  return next_function<int (*)(int, sockaddr*, socklen_t*)>("accept")(
      socket, address, size);
}

[[gnu::visibility("default")]] int accept4(int socket, sockaddr* address,
                                           socklen_t* size, int flags) {
  die_if_connecting(socket);
  return next_function<int (*)(int, sockaddr*, socklen_t*, int)>("accept4")(
      socket, address, size, flags);
}
}

namespace lockstep::testing {
namespace {

int generation() {
  return base::RecoveryWriter::from_environment(base::process_environment())
      .generation();
}

constexpr std::chrono::seconds kBeyondConnecting{6};

// Adds up ranks until all have, whoever is replaced meanwhile.
void meet(const World& world) {
  for (;;) {
    try {
      world.offer_state();
      if (world.rank() == 1 && generation() == 0) raise(SIGKILL);
      // The short limit of connecting is not that of a collective.
      if (world.rank() == 1) std::this_thread::sleep_for(kBeyondConnecting);
      EXPECT_EQ(world.reduce(int64_t{world.rank()}, ReduceOp::kSum), 3);
      world.withdraw_state();
      return;
    } catch (const PeerError&) {
      world.reform();
    }
  }
}

TEST(RecoveryConnect, ANewRankKilledWhileItConnectsIsReplacedAgain) {
  const std::string output = run_processes(
      {.size = 3,
       .environment = {{"LOCKSTEP_EXCHANGE", "gloo"}},
       .launcher_options = {"--recover", "memory"}},
      [] {
        dies_when_connecting = generation() == 1;
        meet(World::from_environment({.device = DeviceChoice::kCpu}));
      });
  EXPECT_NE(output.find("(recovery 2)"), std::string::npos) << output;
}

}  // namespace
}  // namespace lockstep::testing
