#include "lockstep/nodes/frames.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/nodes/proof.h"

namespace lockstep::nodes {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kHeadBytes = kLengthBytes + 1;
constexpr size_t kTagBytes = 16;

std::string little_endian(uint64_t number, size_t num_bytes) {
  std::string bytes;
  for (size_t i = 0; i < num_bytes; ++i) {
    bytes += static_cast<char>(number >> (8 * i) & 0xff);
  }
  return bytes;
}

uint64_t read_little_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

std::string tag_of(const std::string& key, uint64_t number,
                   std::string_view content) {
  return hmac_sha256(key, little_endian(number, 8) + std::string(content))
      .substr(0, kTagBytes);
}

}  // namespace

std::string FrameWriter::write(const Frame& frame) {
  LOCKSTEP_CHECK(frame.body.size() <= kMaxBodyBytes, "length of a message");
  const std::string content = static_cast<char>(frame.type) + frame.body;
  return little_endian(frame.body.size(), kLengthBytes) + content +
         tag_of(key_, number_++, content);
}

std::optional<Frame> FrameReader::next() {
  if (buffer_.size() < kHeadBytes) return std::nullopt;
  const std::string_view bytes = buffer_;
  const uint64_t size = read_little_endian(bytes.substr(0, kLengthBytes));
  if (size > max_body_bytes_) {
    throw FormatError(fmt::format("a message of {} bytes, more than {}", size,
                                  max_body_bytes_));
  }
  const size_t total = kHeadBytes + size + kTagBytes;
  if (bytes.size() < total) return std::nullopt;
  const std::string_view content = bytes.substr(kLengthBytes, size + 1);
  if (!is_same_digest(tag_of(key_, number_, content),
                      bytes.substr(total - kTagBytes, kTagBytes))) {
    throw FormatError("a message with a wrong tag");
  }
  ++number_;
  Frame frame{.type = static_cast<uint8_t>(content[0]),
              .body = std::string(content.substr(1))};
  buffer_.erase(0, total);
  return frame;
}

}  // namespace lockstep::nodes
