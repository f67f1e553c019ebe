// Messages as bytes: a length, a type, a body, and a tag that only the other
// end of the connection can make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::nodes {

// Bodies are bounded: a report about 8 ranks is some 100 KiB.
constexpr size_t kMaxBodyBytes = size_t{16} << 20;

struct Frame {
  uint8_t type = 0;
  std::string body = {};

  bool operator==(const Frame&) const = default;
};

// One direction of one connection. The tag covers the number of the frame:
// none can be left out, repeated or moved.
class FrameWriter {
 public:
  explicit FrameWriter(std::string key) : key_(std::move(key)) {}

  std::string write(const Frame& frame);

 private:
  std::string key_;
  uint64_t number_ = 0;
};

class FrameReader {
 public:
  explicit FrameReader(std::string key, size_t max_body_bytes = kMaxBodyBytes)
      : key_(std::move(key)), max_body_bytes_(max_body_bytes) {}

  void append(std::string_view bytes) { buffer_.append(bytes); }

  // No value while the next one is not complete. Throws FormatError for a body
  // that is too long and a wrong tag; the connection is of no use then.
  std::optional<Frame> next();

  size_t num_buffered_bytes() const { return buffer_.size(); }

 private:
  std::string key_;
  size_t max_body_bytes_;
  uint64_t number_ = 0;
  std::string buffer_;
};

}  // namespace lockstep::nodes
