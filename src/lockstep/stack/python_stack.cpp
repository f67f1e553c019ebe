#include "lockstep/stack/python_stack.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/exec_arrays.h"
#include "lockstep/base/files.h"
#include "lockstep/base/search_path.h"

namespace lockstep::stack {
namespace {

constexpr double kLimitSeconds = 1.5;
constexpr size_t kMostBytes = 32 << 10;

// Until the writer ends, or the time is over.
std::string read_within_limit(int fd) {
  std::string text;
  std::array<char, 4096> bytes{};
  const int64_t begin = base::monotonic_ns();
  for (;;) {
    const double left =
        kLimitSeconds - base::seconds_between(begin, base::monotonic_ns());
    pollfd entry{fd, POLLIN, 0};
    if (left <= 0 || poll(&entry, 1, static_cast<int>(left * 1e3) + 1) <= 0) {
      return "";
    }
    const ssize_t count = read(fd, bytes.data(), bytes.size());
    if (count <= 0) return text;
    text.append(bytes.data(),
                std::min(static_cast<size_t>(count), kMostBytes - text.size()));
  }
}

}  // namespace

bool is_python(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::error_code error;
  const auto program = std::filesystem::read_symlink(process + "/exe", error);
  if (program.filename().string().starts_with("python")) return true;
  const auto maps = base::try_read_file(process + "/maps");
  return maps && maps->find("/libpython") != std::string::npos;
}

std::optional<std::string> read_python_stack(
    pid_t pid, const base::Environment& environment) {
  const auto program = base::find_on_path("py-spy", environment);
  std::array<int, 2> ends{};
  if (!program || pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const base::FileDescriptor output(ends[0]);
  base::FileDescriptor write_end(ends[1]);
  const std::vector<std::string> words = {*program, "dump", "--pid",
                                          std::to_string(pid)};
  const auto arguments = base::pointers_to(words);
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(write_end.get(), STDOUT_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    execv(program->c_str(), arguments.data());
    _exit(127);
  }
  write_end.reset();
  std::string text = read_within_limit(output.get());
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace lockstep::stack
