#include "lockstep/app/spare.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "lockstep/base/environment.h"
#include "lockstep/base/spare.h"

namespace lockstep::app {
namespace {

// While it waits; it has told the launcher so.
constexpr const char* kShownName = "lockstep-spare";

// The launcher's socket, where this process is a spare one.
std::optional<int> spare_socket(int count, char** values) {
  if (count < 2 || std::string_view(values[1]) != base::kSpareCommand) {
    return std::nullopt;
  }
  const auto fd =
      base::find_integer(base::process_environment(), base::kSpareVariable);
  if (!fd) return std::nullopt;
  return static_cast<int>(*fd);
}

void move_descriptor(int from, int to) {
  if (from == to) return;
  dup2(from, to);
  close(from);
}

void replace_environment(const base::Environment& environment) {
  clearenv();
  for (const auto& [name, value] : environment) {
    setenv(name.c_str(), value.c_str(), 1);
  }
}

void close_descriptors(const base::RankStart& start) {
  close(start.stdout_fd);
  close(start.stderr_fd);
  for (const auto& [name, fd] : start.descriptors) close(fd);
}

// What the launcher does for a process that it starts; false: it has ended.
bool become_child_of(pid_t launcher, pid_t first_parent) {
  // Orphans come to the launcher.
  while (getppid() == first_parent) usleep(100);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(launcher));
  return getppid() == launcher;
}

// A copy of this process, in which everything is loaded, is the next spare one.
// A child of the launcher like this one, not of the rank. True in the copy.
bool leave_copy(pid_t launcher) {
  const pid_t child = fork();
  if (child == 0) {
    const pid_t first_parent = getpid();
    if (fork() != 0) _exit(0);
    if (!become_child_of(launcher, first_parent)) _exit(0);
    return true;
  }
  if (child > 0) waitpid(child, nullptr, 0);
  return false;
}

// No value: the launcher needs no spare process any more.
std::optional<base::RankStart> wait_for_start(int socket) {
  const pid_t launcher = getppid();
  std::array<char, 16> name{};  // The longest that the system keeps.
  prctl(PR_GET_NAME, name.data());
  while (true) {
    base::tell_waiting(socket);
    prctl(PR_SET_NAME, kShownName);
    auto start = base::receive_rank_start(socket);
    prctl(PR_SET_NAME, name.data());
    if (!start || !leave_copy(launcher)) return start;
    close_descriptors(*start);
  }
}

// In /proc/PID/cmdline, which is this process's own memory.
void show_as_rank(char* command) {
  static_assert(std::string_view(base::kSpareCommand).size() ==
                std::string_view(base::kSpareBecomes).size());
  std::memcpy(command, base::kSpareBecomes,
              std::string_view(base::kSpareBecomes).size());
}

}  // namespace

std::vector<std::string> arguments_of(int count, char** values) {
  const auto socket = spare_socket(count, values);
  if (!socket) return {values + 1, values + count};
  const auto start = wait_for_start(*socket);
  if (!start) _exit(0);
  close(*socket);
  move_descriptor(start->stdout_fd, STDOUT_FILENO);
  move_descriptor(start->stderr_fd, STDERR_FILENO);
  replace_environment(start->environment);
  show_as_rank(values[1]);
  return start->arguments;
}

}  // namespace lockstep::app
