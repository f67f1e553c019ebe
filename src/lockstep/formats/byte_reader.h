// Reads little-endian values from a span and never past its end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "lockstep/error.h"

namespace lockstep::formats {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and are read without swapping");

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Every function that reads throws FormatError at the end of the bytes.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
    requires std::is_arithmetic_v<T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::span<const std::byte> take(size_t count) {
    if (count > remaining()) {
      throw FormatError("the bytes end at " + std::to_string(bytes_.size()) +
                        ", but " + std::to_string(count) + " are expected at " +
                        std::to_string(position_));
    }
    position_ += count;
    return bytes_.subspan(position_ - count, count);
  }

  std::string_view take_text(size_t count) { return as_text(take(count)); }

  // Up to the line feed, which is skipped.
  std::string_view take_line() {
    const auto rest = as_text(bytes_.subspan(position_));
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) throw FormatError("a line has no end");
    take(end + 1);
    return rest.substr(0, end);
  }

  void seek(size_t position) {
    position_ = 0;
    take(position);
  }

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace lockstep::formats
