#include "lockstep/formats/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

std::string member(const std::string& text) {
  constexpr int kGzip = 16;  // Added to the window's bits.
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + kGzip, 8,
               Z_DEFAULT_STRATEGY);
  std::string bytes(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

TEST(Gzip, MembersAreReadOneBehindTheOther) {
  const std::string large(300'000, 'x');
  EXPECT_EQ(formats::gunzip(member("one ") + member(large) + member("three"),
                            1 << 20),
            "one " + large + "three");
  EXPECT_EQ(formats::gunzip(member(""), 10), "");
  EXPECT_EQ(formats::gunzip(member("one") + std::string(100, '\0'), 10), "one");
  EXPECT_TRUE(formats::is_gzip(member("")));
  EXPECT_FALSE(formats::is_gzip("PK"));
}

TEST(Gzip, DamageAndTooMuchAreRefused) {
  const std::string bytes = member("some text that is long enough");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(formats::gunzip(bytes.substr(0, size), 100), FormatError)
        << size;
  }
  std::string damaged = bytes;
  damaged[bytes.size() - 6] ^= 1;  // The checksum.
  EXPECT_THROW(formats::gunzip(damaged, 100), FormatError);
  EXPECT_THROW(formats::gunzip(bytes, 10), FormatError);
  EXPECT_THROW(formats::gunzip(bytes + "more", 100), FormatError);
}

}  // namespace
}  // namespace lockstep
