#include "lockstep/launch/spares.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/spare.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

// What the other process will be told.
base::RankStart rank_start(const SpawnRequest& request) {
  const auto or_own = [](int fd, int own) { return fd >= 0 ? fd : own; };
  return {.arguments = {request.arguments.begin() + 1, request.arguments.end()},
          .environment = request.environment,
          .stdout_fd = or_own(request.stdout_fd, STDOUT_FILENO),
          .stderr_fd = or_own(request.stderr_fd, STDERR_FILENO),
          .descriptors = request.kept_fds};
}

}  // namespace

void Spares::fill() {
  while (static_cast<int>(spares_.size()) < plan_.num_spares) {
    auto spare = start();
    if (!spare) return;
    spares_.push_back(*std::move(spare));
  }
}

std::optional<Spares::Spare> Spares::start() const {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::nullopt;
  }
  Spare spare{.pid = 0, .socket = base::FileDescriptor(ends[0])};
  const base::FileDescriptor other(ends[1]);
  // A program that knows no spare processes would complain.
  const base::FileDescriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  SpawnRequest request{.file = plan_.command.file,
                       .arguments = plan_.command.arguments,
                       .environment = plan_.environment,
                       .stdout_fd = nowhere.get(),
                       .stderr_fd = nowhere.get(),
                       .kept_fds = {{base::kSpareVariable, other.get()}},
                       .signal_mask = signal_mask_,
                       .cpus = {}};
  request.arguments[1] = base::kSpareCommand;
  request.environment[base::kSpareVariable] = std::to_string(other.get());
  try {
    Spawner spawner;
    spare.pid = spawner.start(request);
    if (spawner.wait_for_exec()) return std::nullopt;
  } catch (const IoError&) {
    return std::nullopt;
  }
  return spare;
}

std::optional<pid_t> Spares::take(const SpawnRequest& request) {
  for (auto spare = spares_.begin(); spare != spares_.end(); ++spare) {
    if (!base::spare_is_waiting(spare->socket.get())) continue;
    const Spare taken = std::move(*spare);
    spares_.erase(spare);
    if (set_cpus(taken.pid, request.cpus) &&
        base::send_rank_start(taken.socket.get(), rank_start(request))) {
      return taken.pid;
    }
    kill(taken.pid, SIGKILL);
    return std::nullopt;
  }
  return std::nullopt;
}

void Spares::forget(pid_t pid) {
  std::erase_if(spares_, [pid](const Spare& spare) { return spare.pid == pid; });
}

void Spares::end() {
  for (const Spare& spare : spares_) kill(spare.pid, SIGKILL);
  spares_.clear();
}

}  // namespace lockstep::launch
