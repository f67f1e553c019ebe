#include "lockstep/launch/spares.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

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
  std::erase_if(sockets_, [](const base::FileDescriptor& socket) {
    return base::spare_has_ended(socket.get());
  });
  while (static_cast<int>(sockets_.size()) < plan_.num_spares) {
    base::FileDescriptor socket = start();
    if (!socket) return;
    sockets_.push_back(std::move(socket));
  }
}

base::FileDescriptor Spares::start() const {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return {};
  }
  base::FileDescriptor own(ends[0]);
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
    spawner.start(request);
    if (spawner.wait_for_exec()) return {};
  } catch (const IoError&) {
    return {};
  }
  return own;
}

std::optional<pid_t> Spares::take(const SpawnRequest& request) {
  for (auto socket = sockets_.begin(); socket != sockets_.end(); ++socket) {
    const auto pid = base::waiting_spare(socket->get());
    if (!pid) continue;
    if (set_cpus(*pid, request.cpus) &&
        base::send_rank_start(socket->get(), rank_start(request))) {
      return pid;
    }
    sockets_.erase(socket);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace lockstep::launch
