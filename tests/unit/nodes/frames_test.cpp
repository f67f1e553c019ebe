#include "lockstep/nodes/frames.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/nodes/proof.h"

namespace lockstep {
namespace {

using nodes::Frame;
using nodes::FrameReader;
using nodes::FrameWriter;

TEST(Proof, IsHmacSha256) {
  // RFC 4231, test case 2.
  std::string digits;
  for (const char byte : nodes::hmac_sha256("Jefe",
                                            "what do ya want for "
                                            "nothing?")) {
    constexpr const char* kDigits = "0123456789abcdef";
    digits += kDigits[static_cast<unsigned char>(byte) >> 4];
    digits += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  EXPECT_EQ(digits,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_NE(nodes::job_key("secret", "a"), nodes::job_key("secret", "b"));
  EXPECT_NE(nodes::job_key("secret", "a"), nodes::job_key("other", "a"));
  EXPECT_FALSE(nodes::is_same_digest("a", "ab"));
}

TEST(Frames, ArriveWholeFromAnyPieces) {
  FrameWriter writer("key");
  std::string bytes;
  const std::vector<Frame> sent = {
      {1, "first"}, {2, ""}, {3, std::string(70000, 'x')}};
  for (const Frame& frame : sent) bytes += writer.write(frame);
  for (const size_t piece :
       {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
    FrameReader reader("key");
    std::vector<Frame> got;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.append(std::string_view(bytes).substr(at, piece));
      while (auto frame = reader.next()) got.push_back(*std::move(frame));
    }
    EXPECT_EQ(got, sent);
    EXPECT_EQ(reader.num_buffered_bytes(), 0u);
  }
}

TEST(Frames, ThatWereChangedRepeatedOrMovedAreRefused) {
  FrameWriter writer("key");
  const std::string first = writer.write({1, "first"});
  const std::string second = writer.write({1, "second"});
  for (size_t at = 4; at < first.size(); ++at) {
    std::string changed = first;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    FrameReader reader("key");
    reader.append(changed);
    EXPECT_THROW(reader.next(), FormatError) << at;
  }
  FrameReader repeated("key");
  repeated.append(first + first);
  EXPECT_TRUE(repeated.next());
  EXPECT_THROW(repeated.next(), FormatError);
  FrameReader moved("key");
  moved.append(second);
  EXPECT_THROW(moved.next(), FormatError);
  FrameReader other_key("other");
  other_key.append(first);
  EXPECT_THROW(other_key.next(), FormatError);
}

TEST(Frames, ThatAreTooLongAreRefusedBeforeTheyArrive) {
  FrameReader reader("key");
  reader.append(std::string("\xff\xff\xff\xff\x01", 5));
  EXPECT_THROW(reader.next(), FormatError);
  FrameReader small("key", 4);
  small.append(FrameWriter("key").write({1, "12345"}));
  EXPECT_THROW(small.next(), FormatError);
}

}  // namespace
}  // namespace lockstep
