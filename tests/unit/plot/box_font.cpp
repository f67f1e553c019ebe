#include "unit/plot/box_font.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::testing {
namespace {

constexpr int kUnits = 1000;  // Per em.

// Big endian.
struct Bytes {
  std::string text = {};

  Bytes& u16(int value) {
    text += static_cast<char>(value >> 8 & 0xff);
    text += static_cast<char>(value & 0xff);
    return *this;
  }
  Bytes& u32(uint32_t value) {
    return u16(static_cast<int>(value >> 16)).u16(static_cast<int>(value));
  }
  Bytes& zeros(size_t count) {
    text.append(count, '\0');
    return *this;
  }
};

std::string box_outline() {
  Bytes bytes;
  bytes.u16(1).u16(0).u16(0).u16(kUnits).u16(kUnits);  // Contours, bounds.
  bytes.u16(3).u16(0);                                 // Last point.
  bytes.text += "\x01\x01\x01\x01";        // Four points on the curve.
  bytes.u16(0).u16(0).u16(kUnits).u16(0);  // Differences of x.
  bytes.u16(0).u16(kUnits).u16(0).u16(-kUnits);
  return bytes.text;
}

std::string character_map(char32_t letter) {
  Bytes bytes;
  bytes.u16(0).u16(1).u16(3).u16(10).u32(12);  // One table, of all of Unicode.
  bytes.u16(12).u16(0).u32(28).u32(0).u32(1);  // Format 12 with one range.
  bytes.u32(letter).u32(letter).u32(1);
  return bytes.text;
}

}  // namespace

std::string box_font(char32_t letter) {
  const std::string outline = box_outline();
  const auto size = static_cast<uint32_t>(outline.size());
  // By name, as the format demands.
  const std::vector<std::pair<std::string, std::string>> tables = {
      {"cmap", character_map(letter)},
      {"glyf", outline},
      {"head", Bytes().zeros(18).u16(kUnits).zeros(30).u16(1).u16(0).text},
      {"hhea", Bytes().zeros(4).u16(kUnits).zeros(28).u16(1).text},
      {"hmtx", Bytes().u16(kUnits).u16(0).u16(0).text},
      {"loca", Bytes().u32(0).u32(0).u32(size).text},
      {"maxp", Bytes().u32(0x10000).u16(2).text}};
  Bytes file;
  file.u32(0x10000).u16(static_cast<int>(tables.size())).zeros(6);
  auto offset = static_cast<uint32_t>(12 + 16 * tables.size());
  std::string contents;
  for (auto [name, bytes] : tables) {
    file.text += name;
    file.u32(0).u32(offset).u32(static_cast<uint32_t>(bytes.size()));
    bytes.resize((bytes.size() + 3) / 4 * 4);
    offset += static_cast<uint32_t>(bytes.size());
    contents += bytes;
  }
  return file.text + contents;
}

}  // namespace lockstep::testing
