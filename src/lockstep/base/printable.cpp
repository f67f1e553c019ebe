#include "lockstep/base/printable.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "lockstep/base/utf8.h"

namespace lockstep::base {
namespace {

using Range = std::pair<uint32_t, uint32_t>;

constexpr std::array<Range, 7> kUnsafe = {{
    {0x00, 0x1f},      // C0
    {0x7f, 0x9f},      // DEL and C1
    {0x061c, 0x061c},  // Arabic letter mark
    {0x200e, 0x200f},  // left-to-right and right-to-left mark
    {0x2028, 0x202e},  // separators, embeddings and overrides of direction
    {0x2066, 0x2069},  // isolates
    {0xfeff, 0xfeff},  // byte order mark
}};

bool is_unsafe(uint32_t code) {
  for (const auto& [first, last] : kUnsafe) {
    if (code >= first && code <= last) return true;
  }
  return false;
}

// For a code point that code_point_size() has found valid.
uint32_t decode(std::string_view bytes) {
  const auto first = static_cast<uint8_t>(bytes[0]);
  if (bytes.size() == 1) return first;
  uint32_t code = first & (0x7fU >> bytes.size());
  for (const char next : bytes.substr(1)) {
    code = code << 6 | (static_cast<uint8_t>(next) & 0x3f);
  }
  return code;
}

std::string escape(uint32_t code) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  return code < 0x100 ? fmt::format("\\x{:02x}", code)
                      : fmt::format("\\u{:04x}", code);
}

std::string escaped(std::string_view text, std::string_view allowed) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t size = code_point_size(text);
    if (size == 0) {
      result += escape(static_cast<uint8_t>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    const std::string_view bytes = text.substr(0, size);
    const uint32_t code = decode(bytes);
    if (is_unsafe(code) && allowed.find(bytes) == std::string_view::npos) {
      result += escape(code);
    } else {
      result += bytes;
    }
    text.remove_prefix(size);
  }
  return result;
}

}  // namespace

std::string printable_line(std::string_view text) { return escaped(text, ""); }

std::string printable_line(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return printable_line(text);
  // Not inside a code point.
  while (most_bytes > 0 &&
         (static_cast<uint8_t>(text[most_bytes]) & 0xc0) == 0x80) {
    --most_bytes;
  }
  return printable_line(text.substr(0, most_bytes)) + "...";
}

std::string printable_text(std::string_view text) {
  return escaped(text, "\n\t");
}

}  // namespace lockstep::base
