#include "lockstep/launch/control.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::launch {

ControlReader::ControlReader(base::FileDescriptor pipe,
                             base::FileDescriptor answers)
    : pipe_(std::move(pipe)), answers_(std::move(answers)) {
  for (const int fd : {pipe_.get(), answers_.get()}) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

std::vector<int> ControlReader::read() {
  std::vector<int> signals;
  std::array<unsigned char, 64> bytes{};
  while (true) {
    const ssize_t count = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) is_abandoned_ = true;
    if (count <= 0) return signals;
    signals.insert(signals.end(), bytes.begin(), bytes.begin() + count);
    // A front that does not read its answers has no need of them.
    const ssize_t written [[maybe_unused]] =
        ::write(answers_.get(), bytes.data(), static_cast<size_t>(count));
  }
}

ControlPipe make_control_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw IoError("cannot make a pipe: " + base::errno_text());
  }
  return {.read_end = base::FileDescriptor(ends[0]),
          .write_end = base::FileDescriptor(ends[1])};
}

void send_signal(const base::FileDescriptor& write_end, int signal) {
  base::write_all(write_end.get(), std::string(1, static_cast<char>(signal)));
}

}  // namespace lockstep::launch
