#include "lockstep/base/utf8.h"

#include <array>
#include <cstdint>

namespace lockstep::base {
namespace {

// Takes one code point off the front; no value when it is not well formed.
std::optional<uint32_t> take_code_point(std::string_view& text) {
  const auto first = static_cast<uint8_t>(text.front());
  const size_t length = first < 0x80   ? 1
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                                       : 4;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() < length) {
    return std::nullopt;
  }
  uint32_t code = length == 1 ? first : first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (next & 0x3f);
  }
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kSmallest[length] || code > 0x10ffff || is_surrogate) {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return code;
}

}  // namespace

size_t code_point_size(std::string_view text) {
  const size_t before = text.size();
  if (text.empty() || !take_code_point(text)) return 0;
  return before - text.size();
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (!take_code_point(text)) return false;
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t size = code_point_size(text);
    if (size == 0) {
      result += "\xef\xbf\xbd";
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

std::optional<std::string> latin1_from_utf8(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const auto code = take_code_point(text);
    if (!code || *code > 0xff) return std::nullopt;
    bytes += static_cast<char>(*code);
  }
  return bytes;
}

std::string utf8_from_latin1(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<uint8_t>(byte);
    if (code < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xc0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return text;
}

}  // namespace lockstep::base
