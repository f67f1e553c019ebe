#include "lockstep/launch/line_splitter.h"

namespace lockstep::launch {
namespace {

// Length of the first line of `bytes` with its end; npos when it has none.
size_t line_length(std::string_view bytes) {
  const auto end = bytes.find_first_of("\r\n");
  if (end == std::string_view::npos) return end;
  const bool is_pair =
      bytes[end] == '\r' && end + 1 < bytes.size() && bytes[end + 1] == '\n';
  return end + (is_pair ? 2 : 1);
}

}  // namespace

void LineSplitter::push(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const auto length = line_length(bytes);
    if (length == std::string_view::npos) {
      partial_ += bytes;
      if (partial_.size() >= kMaxBytes) finish(sink);
      return;
    }
    if (partial_.empty()) {
      sink(bytes.substr(0, length));
    } else {
      partial_ += bytes.substr(0, length);
      finish(sink);
    }
    bytes.remove_prefix(length);
  }
}

void LineSplitter::finish(const Sink& sink) {
  if (partial_.empty()) return;
  const std::string line = std::move(partial_);
  partial_.clear();
  sink(line);
}

}  // namespace lockstep::launch
