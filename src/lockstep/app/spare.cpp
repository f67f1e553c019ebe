#include "lockstep/app/spare.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "lockstep/base/environment.h"
#include "lockstep/base/spare.h"

namespace lockstep::app {
namespace {

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
  base::tell_spare_is_waiting(*socket);
  const auto start = base::receive_rank_start(*socket);
  if (!start) _exit(0);
  close(*socket);
  move_descriptor(start->stdout_fd, STDOUT_FILENO);
  move_descriptor(start->stderr_fd, STDERR_FILENO);
  replace_environment(start->environment);
  show_as_rank(values[1]);
  return start->arguments;
}

}  // namespace lockstep::app
