#include "lockstep/formats/big_int.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"

namespace lockstep {
namespace {

using namespace std::string_view_literals;

TEST(BigInt, TextAndBytesAgreeBothWays) {
  const std::vector<std::pair<std::string, std::string_view>> cases = {
      {"0", ""sv},
      {"1", "\x01"sv},
      {"127", "\x7f"sv},
      {"128", "\x80\x00"sv},
      {"-1", "\xff"sv},
      {"-128", "\x80"sv},
      {"-129", "\x7f\xff"sv},
      {"-256", "\x00\xff"sv},
      {"65536", "\x00\x00\x01"sv},
      {"18446744073709551616", "\0\0\0\0\0\0\0\0\x01"sv},
      {"-18446744073709551616", "\0\0\0\0\0\0\0\0\xff"sv}};
  for (const auto& [decimal, bytes] : cases) {
    EXPECT_EQ(formats::decimal_from_bytes(formats::as_bytes(bytes)), decimal);
    EXPECT_EQ(formats::bytes_from_decimal(decimal), bytes) << decimal;
  }
}

TEST(BigInt, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", "1.5", "12a", "+1"}) {
    EXPECT_THROW(formats::bytes_from_decimal(text), FormatError) << text;
  }
}

}  // namespace
}  // namespace lockstep
