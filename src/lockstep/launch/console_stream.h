// One of the launcher's own output streams.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// Never blocks: what the reader of the stream does not take yet waits here, so
// that a slow terminal cannot keep the launcher from seeing a signal.
class ConsoleStream {
 public:
  explicit ConsoleStream(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  void write(std::string_view text);
  // Writes as much as the stream takes.
  void flush();
  bool has_pending() const { return sent_ < pending_.size(); }
  // The reader is gone; all text is dropped from here on.
  bool is_broken() const { return is_broken_; }

 private:
  int fd_;
  std::string pending_;
  size_t sent_ = 0;
  bool is_broken_ = false;
};

// Waits until the readers took all text. Gives up when `cancel_fd` has
// something to say.
void flush_all(std::span<ConsoleStream* const> consoles, int cancel_fd);

}  // namespace lockstep
