#include "lockstep/track/tfrecord.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// The vectors of RFC 3720, B.4, and the usual check value.
TEST(TfRecord, TheChecksumIsCrc32c) {
  EXPECT_EQ(track::crc32c(""), 0U);
  EXPECT_EQ(track::crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(track::crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(track::crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  std::string rising;
  for (char i = 0; i < 32; ++i) rising += i;
  EXPECT_EQ(track::crc32c(rising), 0x46dd794eU);
}

// What TensorBoard's own RecordWriter makes of "123456789".
TEST(TfRecord, LengthAndDataHaveMaskedChecksums) {
  const std::string record = track::tfrecord("123456789");
  EXPECT_EQ(record.size(), 8U + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(8, 4), "\x37\xf9\x71\x39");
  EXPECT_EQ(record.substr(12, 9), "123456789");
  // ((0xe3069283 >> 15) | (0xe3069283 << 17)) + 0xa282ead8 = 0xc78ab0e5.
  EXPECT_EQ(record.substr(21), "\xe5\xb0\x8a\xc7");
}

}  // namespace
}  // namespace lockstep
