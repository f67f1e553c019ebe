#include "lockstep/launch/python_torch.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "lockstep/base/exec_arrays.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/program.h"

namespace lockstep::launch {
namespace {

// The working folder, which python -c would search first, may hold a folder
// named torch. A package without __init__.py has no origin.
constexpr const char* kQuestion =
    "import sys, os, importlib.util\n"
    "sys.path = [p for p in sys.path if p]\n"
    "spec = importlib.util.find_spec('torch')\n"
    "origin = spec and spec.origin\n"
    "print(os.path.dirname(os.path.abspath(origin)) if origin else '')\n";

// 0 when it cannot be started.
pid_t start_python(const std::string& file,
                   const base::Environment& environment, int output) {
  const std::vector<std::string> words = {file, "-c", kQuestion};
  const std::vector<std::string> entries = base::entries_of(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                   O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, file.c_str(), &actions, nullptr,
                                base::pointers_to(words).data(),
                                base::pointers_to(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? child : 0;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

bool ended_well(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The last line: a Python may print more at its start.
std::string last_line(const std::string& text) {
  const std::string_view whole = base::trim(text);
  return std::string(whole.substr(whole.rfind('\n') + 1));
}

}  // namespace

std::string torch_folder_of_python(const std::string& python,
                                   const base::Environment& environment) {
  std::string file;
  try {
    file = find_executable(python, environment);
  } catch (const ProgramError&) {
    return {};
  }
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const base::FileDescriptor reading(ends[0]);
  base::FileDescriptor writing(ends[1]);
  const pid_t child = start_python(file, environment, writing.get());
  writing.reset();
  if (child == 0) return {};
  const std::string answer = read_all(reading.get());
  return ended_well(child) ? last_line(answer) : "";
}

}  // namespace lockstep::launch
