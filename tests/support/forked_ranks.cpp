#include "support/forked_ranks.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "lockstep/comm/shared_peers.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

struct Pipe {
  base::FileDescriptor read;
  base::FileDescriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

ForkedRank meet(const ForkedRanksConfig& config, int rank,
                const std::vector<comm::PeerListener>& listeners) {
  auto region = comm::SharedRegion::create(comm::fixed_region_bytes());
  comm::PeerExchange exchange{.rank = rank,
                              .listener = &listeners[rank],
                              .own_memory = region.fd(),
                              .timeout = std::chrono::minutes(2)};
  for (const auto& listener : listeners)
    exchange.names.push_back(listener.name);
  auto peers = comm::exchange_descriptors(exchange);
  auto arena = std::make_shared<comm::SharedArena>(comm::SharedArenaConfig{
      .rank = rank, .own = std::move(region), .peers = std::move(peers)});
  arena->open_heap(arena->mapped_bytes());
  return {.rank = rank,
          .size = config.size,
          .arena = arena,
          .collectives = comm::SharedCollectives(comm::SharedChannel(arena, 0)),
          .timeout_ns = static_cast<int64_t>(config.timeout_seconds * 1e9)};
}

[[noreturn]] void be_forked(
    const ForkedRanksConfig& config, int rank,
    const std::vector<comm::PeerListener>& listeners, int report_to,
    const std::function<std::string(ForkedRank&)>& body) {
  std::string report;
  try {
    ForkedRank self = meet(config, rank, listeners);
    base::write_all(report_to, "\n");  // It has met the others.
    report = body(self);
  } catch (const std::exception& error) {
    report = kind_name(error) + ": " + error.what();
  }
  base::write_all(report_to, report);
  std::_Exit(0);
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t length = 0;
  while ((length = read(fd, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(length));
  }
  return text;
}

}  // namespace

void ForkedRank::run(const comm::SharedCall& call) {
  collectives.begin(call);
  collectives.finish(
      call, {.style = comm::WaitStyle::kSpin, .timeout_ns = timeout_ns});
}

std::vector<ForkedEnd> run_forked(
    const ForkedRanksConfig& config,
    const std::function<std::string(ForkedRank&)>& body) {
  std::vector<comm::PeerListener> listeners;
  for (int rank = 0; rank < config.size; ++rank) {
    listeners.push_back(comm::listen_for_peers(config.size));
  }
  std::vector<Pipe> pipes;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < config.size; ++rank) {
    pipes.push_back(make_pipe());
    const pid_t pid = fork();
    if (pid == 0) {
      be_forked(config, rank, listeners, pipes[rank].write.get(), body);
    }
    pids.push_back(pid);
    pipes[rank].write.reset();
  }
  listeners.clear();
  for (const Pipe& pipe : pipes) {
    char met = 0;
    if (read(pipe.read.get(), &met, 1) != 1) break;
  }
  config.disturb(pids);
  std::vector<ForkedEnd> ends(config.size);
  // Those that go on are read first; what has stopped is killed after them.
  for (int rank = 0; rank < config.size; ++rank) {
    siginfo_t state{};
    waitid(P_PID, pids[rank], &state, WEXITED | WSTOPPED | WNOWAIT);
    if (state.si_code == CLD_STOPPED) continue;
    ends[rank].report = read_to_end(pipes[rank].read.get());
  }
  for (int rank = 0; rank < config.size; ++rank) {
    int status = 0;
    kill(pids[rank], SIGKILL);
    waitpid(pids[rank], &status, 0);
    if (WIFSIGNALED(status)) ends[rank].signal = WTERMSIG(status);
  }
  return ends;
}

}  // namespace lockstep::testing
