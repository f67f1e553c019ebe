#include "support/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

#include "lockstep/error.h"

namespace lockstep::testing {

void Screen::show(std::string_view bytes) {
  constexpr std::string_view kErase = "\x1b[K";
  while (!bytes.empty()) {
    if (bytes.starts_with(kErase)) {
      lines_.back().resize(std::min(column_, lines_.back().size()));
      bytes.remove_prefix(kErase.size());
      continue;
    }
    put(bytes.front());
    bytes.remove_prefix(1);
  }
}

void Screen::put(char c) {
  if (c == '\r') {
    column_ = 0;
    return;
  }
  if (c == '\n') {
    lines_.emplace_back();
    return;
  }
  if (column_ == columns_) {
    lines_.emplace_back();
    column_ = 0;
  }
  std::string& line = lines_.back();
  if (line.size() <= column_) line.resize(column_ + 1, ' ');
  line[column_] = static_cast<unsigned char>(c) < ' ' ? '?' : c;
  ++column_;
}

std::vector<std::string> Screen::lines() const {
  std::vector<std::string> result = lines_;
  for (std::string& line : result) {
    line.resize(line.find_last_not_of(' ') + 1);
  }
  if (result.back().empty()) result.pop_back();
  return result;
}

Terminal::Terminal(int columns)
    : own_end_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)),
      columns_(static_cast<size_t>(columns)) {
  if (grantpt(own_end_.get()) != 0 || unlockpt(own_end_.get()) != 0) {
    throw IoError("cannot make a terminal: " + base::errno_text());
  }
  worker_end_ = base::FileDescriptor(
      open(ptsname(own_end_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  const winsize size{.ws_row = 25,
                     .ws_col = static_cast<unsigned short>(columns),
                     .ws_xpixel = 0,
                     .ws_ypixel = 0};
  if (ioctl(own_end_.get(), TIOCSWINSZ, &size) != 0) {
    throw IoError("cannot size a terminal: " + base::errno_text());
  }
}

std::vector<std::string> Terminal::lines() {
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = read(own_end_.get(), buffer.data(), buffer.size())) > 0) {
    bytes_.append(buffer.data(), static_cast<size_t>(count));
  }
  // From the beginning, because a read may end inside of a sequence.
  Screen screen(columns_);
  screen.show(bytes_);
  return screen.lines();
}

}  // namespace lockstep::testing
