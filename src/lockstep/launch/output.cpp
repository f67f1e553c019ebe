#include "lockstep/launch/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "lockstep/base/clock.h"
#include "lockstep/base/regular_file.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

// The size of a pipe: one read empties it.
constexpr size_t kBufferBytes = 65536;

// A report shows the tail; a line of a megabyte would hide it.
constexpr size_t kTailLineBytes = 2000;

// Without its end and the frames that it overwrote.
std::string visible_part(std::string_view line) {
  line = line.substr(0, line.find_last_not_of("\r\n") + 1);
  line.remove_prefix(line.find_last_of('\r') + 1);
  return std::string(line.substr(0, kTailLineBytes));
}

bool matches(std::string_view line, const std::vector<std::string>& filters) {
  return std::any_of(filters.begin(), filters.end(),
                     [line](const std::string& filter) {
                       return line.find(filter) != std::string_view::npos;
                     });
}

// "host:123:123 [0] NCCL INFO ...": names a process, but not its rank.
bool is_of_nccl(std::string_view line) {
  for (const char* mark : {" NCCL INFO ", " NCCL WARN ", " NCCL TRACE "}) {
    if (line.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::string nccl_prefix(int rank) {
  return "[rank" + std::to_string(rank) + "]:";
}

OutputStream::OutputStream(base::FileDescriptor pipe, OutputTarget target)
    : pipe_(std::move(pipe)),
      target_(std::move(target)),
      last_output_ns_(base::monotonic_ns()) {
  fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
}

bool OutputStream::is_held_up() const {
  return target_.console != nullptr && target_.console->has_pending();
}

bool OutputStream::pump() {
  if (!pipe_) return false;
  std::array<char, kBufferBytes> buffer;
  const ssize_t count = read(pipe_.get(), buffer.data(), buffer.size());
  if (count < 0) {
    if (errno != EAGAIN && errno != EINTR) close();
    return false;
  }
  if (count == 0) {
    close();
    return false;
  }
  last_output_ns_ = base::monotonic_ns();
  splitter_.push({buffer.data(), static_cast<size_t>(count)},
                 [this](std::string_view line) { deliver(line); });
  if (target_.console != nullptr) {
    target_.console->flush();
    // As with an inherited console whose reader is gone, the worker notices.
    if (target_.console->is_broken() && !target_.log) close();
  }
  return true;
}

void OutputStream::close() {
  splitter_.finish([this](std::string_view line) { deliver(line); });
  if (target_.console != nullptr) {
    target_.console->leave(pipe_.get());
    target_.console->flush();
  }
  pipe_.reset();
}

void OutputStream::set_rank(int rank, const std::string& prefix) {
  target_.rank = rank;
  target_.nccl_prefix = nccl_prefix(rank);
  if (!target_.prefix.empty()) target_.prefix = prefix;
  if (!target_.filtered_prefix.empty()) target_.filtered_prefix = prefix;
}

void OutputStream::deliver(std::string_view line) {
  const bool is_held =
      target_.errors != nullptr &&
      target_.errors->take(target_.rank, line, base::monotonic_ns());
  if (target_.console != nullptr && !is_held) {
    const bool only_nccl = target_.prefix.empty() && is_of_nccl(line);
    std::string text = only_nccl ? target_.nccl_prefix : target_.prefix;
    text += line;
    // A teed line that never ended must not glue to the next prefix.
    if (!target_.prefix.empty() && line.back() != '\n' && line.back() != '\r') {
      text += '\n';
    }
    target_.console->write(text, pipe_.get());
  }
  if (target_.log) target_.log->write(line);
  if (target_.filtered != nullptr && matches(line, target_.filters)) {
    target_.filtered->write(target_.filtered_prefix + std::string(line));
  }
  keep(line);
}

void OutputStream::keep(std::string_view line) {
  const bool is_frame = line.back() == '\r';
  if (!base::trim(line).empty()) {
    if (ends_in_frame_) tail_.pop_back();
    if (tail_.size() == kTailLines) tail_.pop_front();
    tail_.push_back(visible_part(line));
    ends_in_frame_ = is_frame;
  } else if (!is_frame) {
    ends_in_frame_ = false;
  }
}

std::vector<std::string> last_lines(const std::filesystem::path& path,
                                    size_t count) {
  constexpr size_t kReadBytes = 65536;
  const auto end = base::try_read_regular_file_end(path, kReadBytes);
  if (!end) return {};
  std::deque<std::string> lines;
  for (const std::string& line : base::split(*end, '\n')) {
    if (base::trim(line).empty()) continue;
    lines.push_back(visible_part(line));
    if (lines.size() > count) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

}  // namespace lockstep::launch
