#include "lockstep/formats/lzf.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using ByteVector = std::vector<uint8_t>;

// A chunk that h5py compressed.
constexpr const char* kChunk =
    "106c6966742074686520726564206375702c400c026e206cc01603626c75658017"
    "0061e0ff00e01a001f000102030405060708090a0b0c0d0e0f10111213141516"
    "1718191a1b1c1d1e1f072021222324252627";

ByteVector from_hex(const std::string& text) {
  ByteVector bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(
        static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

ByteVector original() {
  const std::string text =
      "lift the red cup, then lift the blue cup, " + std::string(300, 'a');
  ByteVector bytes(text.begin(), text.end());
  for (uint8_t i = 0; i < 40; ++i) bytes.push_back(i);
  return bytes;
}

TEST(Lzf, ReadsWhatH5pyCompressed) {
  EXPECT_EQ(formats::decompress_lzf(from_hex(kChunk), 382), original());
  EXPECT_EQ(formats::decompress_lzf({}, 0), ByteVector());
  // A match that reaches into itself.
  EXPECT_EQ(formats::decompress_lzf(ByteVector{0, 'x', 0x20, 0}, 4),
            ByteVector(4, 'x'));
}

TEST(Lzf, EveryCutIsRefused) {
  const ByteVector whole = from_hex(kChunk);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(formats::decompress_lzf(std::span(whole).first(size), 382),
                 FormatError)
        << size;
  }
}

TEST(Lzf, DamagedAndTooLongDataAreRefused) {
  EXPECT_THROW(formats::decompress_lzf(from_hex(kChunk), 381), FormatError);
  EXPECT_THROW(formats::decompress_lzf(from_hex(kChunk), 383), FormatError);
  // A match before the begin.
  EXPECT_THROW(formats::decompress_lzf(ByteVector{0, 'x', 0x20, 1}, 4),
               FormatError);
  EXPECT_THROW(formats::decompress_lzf(ByteVector{0xE0, 0xFF, 0xFF}, 264),
               FormatError);
}

TEST(Lzf, AnyChangedByteGivesTheSizeOrIsRefused) {
  const ByteVector whole = from_hex(kChunk);
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      ByteVector changed = whole;
      changed[i] = static_cast<uint8_t>(value);
      try {
        EXPECT_EQ(formats::decompress_lzf(changed, 382).size(), 382U);
      } catch (const FormatError&) {
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
