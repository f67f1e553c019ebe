#include "lockstep/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::text {
namespace {

struct Range {
  uint8_t low = 0x80;
  uint8_t high = 0xbf;
};

// What may follow the first byte: the table of well-formed sequences.
Range second_byte(uint8_t first) {
  switch (first) {
    case 0xe0: return {.low = 0xa0};
    case 0xed: return {.high = 0x9f};
    case 0xf0: return {.low = 0x90};
    case 0xf4: return {.high = 0x8f};
    default: return {};
  }
}

// For a text that does not begin with a whole code point; at least 1.
size_t broken_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0xc2 || first > 0xf4) return 1;
  const size_t whole = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  size_t size = 1;
  Range range = second_byte(first);
  while (size < std::min(whole, text.size()) && byte(size) >= range.low &&
         byte(size) <= range.high) {
    ++size;
    range = {};
  }
  return size;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

constexpr std::array<std::string_view, 25> kSpaces = {
    "\t",           "\n",           "\v",
    "\f",           "\r",           " ",
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
    "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
    "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85",
    "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
    "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
    "\xe3\x80\x80"};

}  // namespace

std::string lossy_utf8(std::string_view bytes) {
  if (base::is_utf8(bytes)) return std::string(bytes);
  std::string text;
  while (!bytes.empty()) {
    size_t size = base::code_point_size(bytes);
    if (size == 0) {
      text += "\xef\xbf\xbd";
      size = broken_size(bytes);
    } else {
      text += bytes.substr(0, size);
    }
    bytes.remove_prefix(size);
  }
  return text;
}

std::string to_nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  utf8proc_uint8_t* result = nullptr;
  const auto size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &result,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(
      result, &std::free);
  LOCKSTEP_CHECK(size >= 0, utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(result), static_cast<size_t>(size)};
}

size_t leading_space(std::string_view text) {
  size_t size = 0;
  const auto begins = [&](std::string_view space) {
    return text.substr(size).starts_with(space);
  };
  while (true) {
    const auto* const found =
        std::find_if(kSpaces.begin(), kSpaces.end(), begins);
    if (found == kSpaces.end()) return size;
    size += found->size();
  }
}

size_t trailing_space(std::string_view text) {
  const size_t whole = text.size();
  const auto ends = [&](std::string_view space) {
    return text.ends_with(space);
  };
  while (true) {
    const auto* const found =
        std::find_if(kSpaces.begin(), kSpaces.end(), ends);
    if (found == kSpaces.end()) return whole - text.size();
    text.remove_suffix(found->size());
  }
}

}  // namespace lockstep::text
