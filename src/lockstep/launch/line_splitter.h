// Cuts a stream of bytes into lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::launch {

// A line ends with \n, with \r\n, or with \r alone (progress bars), and keeps
// its end. Bytes without an end wait for more, up to kMaxBytes.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string_view line)>;
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  void push(std::string_view bytes, const Sink& sink);
  // Hands out what is left; the stream has ended.
  void finish(const Sink& sink);

 private:
  std::string partial_;
};

}  // namespace lockstep::launch
