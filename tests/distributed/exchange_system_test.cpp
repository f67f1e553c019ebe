// The exchange where the system refuses something, where other users and
// namespaces are near, and what is left of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>

#include "distributed/exchange_backend.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/comm/shared_arena.h"
#include "lockstep/comm/shared_peers.h"
#include "lockstep/error.h"
#include "support/free_port.h"
#include "support/hosts.h"
#include "support/messages.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::cpu_backend;
using testing::expect_in;
using testing::is_shared_memory;
using testing::Process;
using testing::ProcessOptions;
using testing::refusal;
using testing::run_processes;
using torch::Tensor;

World connect() {
  return World::from_environment({.device = DeviceChoice::kCpu});
}

void expect_once(const std::string& text, const std::string& part) {
  expect_in(text, part);
  EXPECT_EQ(text.find(part, text.find(part) + 1), std::string::npos) << text;
}

// memfd_create() fails from now on, as in a sandbox.
void refuse_memfd() {
  std::array<sock_filter, 4> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(ExchangeAndSystem, WithoutMemfdGlooTakesOverWithOneLine) {
  const std::string output = run_processes({.size = 3}, [] {
    if (base::process_environment()["RANK"] == "1") refuse_memfd();
    const World world = connect();
    EXPECT_EQ(cpu_backend(world)->getBackendName(), "gloo");
    EXPECT_EQ(world.reduce(1, ReduceOp::kSum), 3);
  });
  if (std::getenv("RANK") != nullptr) return;
  expect_once(output,
              "tensors are exchanged over Gloo, not through shared memory: "
              "rank 1: cannot make shared memory: Operation not permitted "
              "(errno 1)");
}

TEST(ExchangeAndSystem, WorksWithFewAddresses) {
  run_processes({.size = 2}, [] {
    const auto pages = std::stoll(base::read_file("/proc/self/statm"));
    const rlim_t in_use = pages * sysconf(_SC_PAGESIZE);
    const rlimit limit{.rlim_cur = in_use + (rlim_t{2} << 30),
                       .rlim_max = RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    const World world = connect();
    EXPECT_EQ(cpu_backend(world)->getBackendName(), "shared");
    // More than there are addresses for: ordinary memory.
    Tensor large = cpu_backend(world)->allocateTensor(
        100 << 20, at::TensorOptions().dtype(at::kFloat));
    EXPECT_FALSE(is_shared_memory(large.const_data_ptr()));
    large.fill_(1);
    world.all_reduce(large);
    EXPECT_EQ(large[-1].item<float>(), 2);
  });
}

// `ulimit -f`: memory files count. Beyond it the system sends SIGXFSZ, which
// ends a process that does not care for it.
void limit_files(rlim_t bytes) {
  ASSERT_NE(std::signal(SIGXFSZ, SIG_DFL), SIG_ERR);
  const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(ExchangeAndSystem, WithoutMemoryToStartWithGlooTakesOverWithOneLine) {
  const std::string output = run_processes({.size = 2}, [] {
    if (base::process_environment()["RANK"] == "1") limit_files(1 << 20);
    const World world = connect();
    EXPECT_EQ(cpu_backend(world)->getBackendName(), "gloo");
    EXPECT_EQ(world.reduce(1, ReduceOp::kSum), 2);
  });
  if (std::getenv("RANK") != nullptr) return;
  expect_once(output,
              "tensors are exchanged over Gloo, not through shared memory: "
              "rank 1: cannot take shared memory: File too large (errno 27)");
}

TEST(ExchangeAndSystem, TensorsForWhichThereIsNoMemoryAreCopied) {
  run_processes({.size = 2}, [] {
    constexpr int64_t kCount = 25 << 20;
    limit_files(rlim_t{20} << 20);
    const World world = connect();
    ASSERT_EQ(cpu_backend(world)->getBackendName(), "shared");
    const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat);
    Tensor large = cpu_backend(world)->allocateTensor(kCount, options);
    EXPECT_FALSE(is_shared_memory(large.const_data_ptr()));
    large.fill_(1);
    world.all_reduce(large);
    EXPECT_EQ(large[-1].item<float>(), 2);
    // What was refused took nothing away from those that fit.
    Tensor small = cpu_backend(world)->allocateTensor(1 << 20, options);
    EXPECT_TRUE(is_shared_memory(small.const_data_ptr()));
    small.fill_(1);
    world.all_reduce(small);
    EXPECT_EQ(small[-1].item<float>(), 2);
    // The signal is as it was, and none waits to be delivered.
    sigset_t blocked;
    sigset_t pending;
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    ASSERT_EQ(sigpending(&pending), 0);
    EXPECT_EQ(sigismember(&blocked, SIGXFSZ), 0);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
  });
}

TEST(ExchangeAndSystem, TensorsOutliveTheWorldTheyWereMadeBy) {
  run_processes({.size = 2}, [] {
    Tensor kept;
    {
      const World world = connect();
      kept = cpu_backend(world)->allocateTensor(
          100000, at::TensorOptions().dtype(at::kFloat));
      kept.fill_(3);
    }
    EXPECT_EQ(kept.sum().item<float>(), 300000);
    EXPECT_TRUE(is_shared_memory(kept.const_data_ptr()));
    kept.reset();
    EXPECT_EQ(base::read_file("/proc/self/maps").find("lockstep-exchange"),
              std::string::npos);
  });
}

// Names of open memory files and sockets.
std::vector<std::string> shared_files() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code is_closed;  // The one that lists the folder.
    const std::string name = std::filesystem::read_symlink(entry, is_closed);
    if (name.starts_with("socket:") ||
        name.find("lockstep-exchange") != std::string::npos) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ExchangeAndSystem, NoDescriptorAndNoMappingOutlivesTheWorld) {
  run_processes({.size = 3}, [] {
    const auto before = shared_files();
    {
      const World world = connect();
      ASSERT_EQ(cpu_backend(world)->getBackendName(), "shared");
      Tensor tensor = torch::ones({1 << 20});
      world.all_reduce(tensor);
      auto bucket = cpu_backend(world)->allocateTensor(1 << 20, {});
      EXPECT_GT(shared_files().size(), before.size());
    }
    EXPECT_EQ(shared_files(), before);
    EXPECT_EQ(base::read_file("/proc/self/maps").find("lockstep-exchange"),
              std::string::npos);
  });
}

// Two ends of a machine that want to share memory.
struct Pair {
  std::array<comm::PeerListener, 2> listeners = {comm::listen_for_peers(2),
                                                 comm::listen_for_peers(2)};
  std::array<comm::SharedRegion, 2> regions = {
      comm::SharedRegion::create(comm::fixed_region_bytes()),
      comm::SharedRegion::create(comm::fixed_region_bytes())};

  comm::PeerExchange side(int rank) const {
    return {.rank = rank,
            .listener = &listeners[rank],
            .names = {listeners[0].name, listeners[1].name},
            .own_memory = regions[rank].fd(),
            .timeout = std::chrono::minutes(2)};
  }
};

TEST(ExchangeAndSystem, AnotherUsersMemoryIsRefused) {
  const Pair pair;
  comm::PeerExchange caller = pair.side(1);
  caller.user = geteuid() + 1;
  expect_in(refusal<IoError>([&] { comm::exchange_descriptors(caller); }),
            "rank 0 runs as another user");
  // The one who is called sends everybody else away, and waits on.
  comm::PeerExchange called = pair.side(0);
  called.user = geteuid() + 1;
  called.timeout = std::chrono::milliseconds(100);
  expect_in(refusal<IoError>([&] { comm::exchange_descriptors(called); }),
            "did not meet in time");
}

// A real one, where the test may change its user.
TEST(ExchangeAndSystem, AStrangerWhoKnowsAllNamesIsSentAway) {
  if (geteuid() != 0) return;  // The test above shows it without rights.
  constexpr uid_t kNobody = 65534;
  const Pair pair;
  const pid_t stranger = fork();
  if (stranger == 0) {
    // As rank 1, with the right words and a region of its own.
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
    comm::PeerExchange lie = pair.side(1);
    lie.user = 0;
    try {
      comm::exchange_descriptors(lie);
      _exit(2);
    } catch (const IoError&) {
      _exit(0);
    }
  }
  auto of_rank0 = std::async(std::launch::async, [&] {
    return comm::exchange_descriptors(pair.side(0));
  });
  int status = 0;
  ASSERT_EQ(waitpid(stranger, &status, 0), stranger);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // The group is as if it had never been there.
  const auto of_rank1 = comm::exchange_descriptors(pair.side(1));
  EXPECT_TRUE(of_rank1[0].memory);
  EXPECT_TRUE(of_rank0.get()[1].memory);
}

using Words = std::vector<std::string>;

// Two ranks of one kernel, each started by the words that `place` puts before
// its command.
std::vector<testing::ProcessResult> run_in_places(
    const std::string& master, const std::string& port,
    const std::string& exchange,
    const std::function<Words(int, const Words&)>& place) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ProcessOptions options{.environment = {{"RANK", std::to_string(rank)},
                                           {"WORLD_SIZE", "2"},
                                           {"MASTER_ADDR", master},
                                           {"MASTER_PORT", port},
                                           {"OMP_NUM_THREADS", "1"},
                                           {"LOCKSTEP_TEST_INSIDE_RANK", "1"}}};
    if (!exchange.empty()) options.environment["LOCKSTEP_EXCHANGE"] = exchange;
    ranks.push_back(std::make_unique<Process>(
        place(rank, {self, std::string("--gtest_filter=") +
                               info->test_suite_name() + "." + info->name()}),
        options));
  }
  return {ranks[0]->wait(), ranks[1]->wait()};
}

void tell_backend() {
  const World world = connect();
  EXPECT_EQ(world.reduce(1, ReduceOp::kSum), 2);
  std::printf("over %s\n", cpu_backend(world)->getBackendName().c_str());
}

TEST(ExchangeAndSystem, HostsThatShareAKernelButNoNetworkUseGloo) {
  if (std::getenv("RANK") != nullptr) run_processes({}, tell_backend);
  const testing::Hosts hosts(2);
  const auto on_host = [&](int rank, const Words& command) {
    Words words = {"/usr/bin/env", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1"};
    words.insert(words.end(), command.begin(), command.end());
    return hosts.on(rank, words);
  };
  for (const auto& end :
       run_in_places(hosts.address(0), "29555", "", on_host)) {
    EXPECT_EQ(end.exit_code, 0) << end.err;
    expect_in(end.out, "over gloo");
  }
  const auto refused =
      run_in_places(hosts.address(0), "29556", "shared", on_host);
  EXPECT_EQ(refused[0].exit_code, 2) << refused[0].err;
  const std::string output = refused[0].out + refused[0].err;
  expect_in(output,
            "LOCKSTEP_EXCHANGE=shared, but the ranks cannot share memory: ");
  expect_in(output,
            "rank 1: rank 0 is not reached through a unix socket (another "
            "network namespace?)");
  // Rank 0 hosts the store here: it may be gone before rank 1 has read all.
  EXPECT_NE(refused[1].exit_code, 0);
}

// The name of a host says nothing about its memory.
TEST(ExchangeAndSystem, HostsOfOneKernelAndNetworkShareMemory) {
  if (std::getenv("RANK") != nullptr) run_processes({}, tell_backend);
  const auto ends =
      run_in_places("127.0.0.1", testing::free_port(), "shared",
                    [](int rank, const Words& command) {
                      Words words = {"/usr/bin/unshare",
                                     "--map-root-user",
                                     "--uts",
                                     "/bin/sh",
                                     "-c",
                                     "hostname name" + std::to_string(rank) +
                                         R"( && exec "$@")",
                                     "sh"};
                      words.insert(words.end(), command.begin(), command.end());
                      return words;
                    });
  for (const auto& end : ends) {
    EXPECT_EQ(end.exit_code, 0) << end.err;
    expect_in(end.out, "over shared");
  }
}

}  // namespace
}  // namespace lockstep
