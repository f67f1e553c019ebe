#include "lockstep/launch/console_stream.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/terminal.h"

namespace lockstep::launch {
namespace {

// A pipe that is ready for writing takes at least PIPE_BUF bytes at once.
constexpr size_t kSafeBytes = 4096;

bool is_writable(int fd) {
  pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

}  // namespace

void ConsoleStream::write(std::string_view text, int writer) {
  if (is_broken_) return;
  if (columns_ > 0) {
    write_on_terminal(text, writer);
  } else {
    pending_ += text;
  }
}

void ConsoleStream::write_on_terminal(std::string_view text, int writer) {
  // A lone worker draws on the terminal itself: only the launcher's own words
  // can meet a frame that is not known here.
  const bool is_over_frame =
      writer == kLauncher || (!frame_.empty() && writer != frame_writer_);
  if (is_over_frame) pending_ += base::kEraseToEnd;
  pending_ += text;
  if (text.ends_with('\r')) {
    frame_ = text;
    frame_writer_ = writer;
  } else if (is_over_frame && text.ends_with('\n')) {
    pending_ += frame_;
  } else {
    frame_.clear();
  }
}

void ConsoleStream::leave(int writer) {
  if (frame_.empty() || writer != frame_writer_) return;
  pending_ += "\n";
  frame_.clear();
}

void ConsoleStream::flush() {
  while (has_pending() && is_writable(fd_)) {
    const ssize_t count =
        ::write(fd_, pending_.data() + sent_,
                std::min(kSafeBytes, pending_.size() - sent_));
    if (count >= 0) {
      sent_ += static_cast<size_t>(count);
    } else if (errno == EPIPE || errno == EIO) {
      is_broken_ = true;
      sent_ = pending_.size();
    } else if (errno != EINTR && errno != EAGAIN) {
      drop_pending();
    }
  }
  if (!has_pending()) {
    pending_.clear();
    sent_ = 0;
  }
}

void ConsoleStream::drop_pending() {
  if (loss_reason_.empty()) loss_reason_ = base::errno_text();
  lost_lines_ +=
      std::count(pending_.begin() + static_cast<std::ptrdiff_t>(sent_),
                 pending_.end(), '\n');
  sent_ = pending_.size();
}

void flush_all(std::span<ConsoleStream* const> consoles, int cancel_fd) {
  while (true) {
    std::vector<pollfd> entries = {{cancel_fd, POLLIN, 0}};
    for (ConsoleStream* console : consoles) {
      console->flush();
      if (console->has_pending())
        entries.push_back({console->fd(), POLLOUT, 0});
    }
    if (entries.size() == 1) return;
    poll(entries.data(), entries.size(), -1);
    if (entries[0].revents != 0) return;
  }
}

}  // namespace lockstep::launch
