#include "lockstep/formats/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <vector>

#include "lockstep/formats/byte_reader.h"

namespace lockstep {
namespace {

TEST(Crc32, IsThatOfZipFiles) {
  EXPECT_EQ(formats::crc32_of(formats::as_bytes("123456789")), 0xcbf43926U);
  EXPECT_EQ(formats::crc32_of({}), 0U);
}

TEST(Crc32, IsThatOfZlibForEveryLengthAndPlace) {
  std::mt19937 random(3);
  std::vector<unsigned char> bytes(1'200);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  for (size_t begin = 0; begin < 64; begin += 7) {
    for (size_t size = 0; size + begin <= bytes.size(); ++size) {
      const std::span part(bytes.data() + begin, size);
      ASSERT_EQ(formats::crc32_of(std::as_bytes(part)),
                crc32_z(0, part.data(), part.size()))
          << size << " bytes from " << begin;
    }
  }
}

}  // namespace
}  // namespace lockstep
