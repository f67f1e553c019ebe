// One of the launcher's own output streams.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::launch {

// Never blocks: what the reader of the stream does not take yet waits here, so
// that a slow terminal cannot keep the launcher from seeing a signal.
//
// A text that ends with \r is a frame of a progress bar. On a terminal it stays
// the last line: lines of other writers appear above it, whole and alone.
class ConsoleStream {
 public:
  // The launcher itself; workers' streams have numbers from 0.
  static constexpr int kLauncher = -1;

  // `columns` is the terminal's width, 0 when it is not a terminal.
  explicit ConsoleStream(int fd, int columns = 0)
      : fd_(fd), columns_(columns) {}

  int fd() const { return fd_; }
  int columns() const { return columns_; }
  void write(std::string_view text, int writer = kLauncher);
  // The writer is gone; its last frame becomes a line.
  void leave(int writer);
  // Writes as much as the stream takes.
  void flush();
  bool has_pending() const { return sent_ < pending_.size(); }
  // The reader is gone; all text is dropped from here on.
  bool is_broken() const { return is_broken_; }
  // Lines that a full disk, or the like, did not take; they are dropped.
  int64_t lost_lines() const { return lost_lines_; }
  const std::string& loss_reason() const { return loss_reason_; }

 private:
  void write_on_terminal(std::string_view text, int writer);
  void drop_pending();

  int fd_;
  int columns_;
  std::string frame_;  // visible below all lines; empty: none
  int frame_writer_ = kLauncher;
  std::string pending_;
  size_t sent_ = 0;
  bool is_broken_ = false;
  int64_t lost_lines_ = 0;
  std::string loss_reason_;  // of the first loss
};

// Waits until the readers took all text. Gives up when `cancel_fd` becomes
// readable.
void flush_all(std::span<ConsoleStream* const> consoles, int cancel_fd);

}  // namespace lockstep::launch
