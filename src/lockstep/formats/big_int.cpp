#include "lockstep/formats/big_int.h"

#include <algorithm>
#include <cstdint>

#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

// Two's complement of `digits`, in base 256, lowest first.
void negate(std::string& digits) {
  unsigned carry = 1;
  for (char& digit : digits) {
    carry += static_cast<uint8_t>(~static_cast<uint8_t>(digit));
    digit = static_cast<char>(carry & 0xff);
    carry >>= 8;
  }
}

bool has_sign_bit(const std::string& digits) {
  return !digits.empty() && static_cast<uint8_t>(digits.back()) >= 0x80;
}

}  // namespace

std::string decimal_from_bytes(std::span<const std::byte> bytes) {
  std::string digits(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool is_negative = has_sign_bit(digits);
  if (is_negative) negate(digits);
  std::string decimal;
  while (!digits.empty()) {
    unsigned rest = 0;
    for (size_t i = digits.size(); i-- > 0;) {
      rest = rest * 256 + static_cast<uint8_t>(digits[i]);
      digits[i] = static_cast<char>(rest / 10);
      rest %= 10;
    }
    decimal += static_cast<char>('0' + rest);
    while (!digits.empty() && digits.back() == 0) digits.pop_back();
  }
  if (decimal.empty()) decimal = "0";
  if (is_negative) decimal += '-';
  std::ranges::reverse(decimal);
  return decimal;
}

std::string bytes_from_decimal(std::string_view decimal) {
  const bool is_negative = decimal.starts_with('-');
  const auto numerals = decimal.substr(is_negative ? 1 : 0);
  if (numerals.empty() ||
      numerals.find_first_not_of("0123456789") != std::string_view::npos) {
    throw FormatError("'" + std::string(decimal) + "' is not an integer");
  }
  std::string digits;
  for (const char numeral : numerals) {
    auto carry = static_cast<unsigned>(numeral - '0');
    for (char& digit : digits) {
      carry += 10 * static_cast<uint8_t>(digit);
      digit = static_cast<char>(carry & 0xff);
      carry >>= 8;
    }
    if (carry > 0) digits += static_cast<char>(carry);
  }
  if (has_sign_bit(digits)) digits += '\0';
  if (is_negative) {
    negate(digits);
    // -128 is one byte, though 128 needs two.
    while (digits.size() > 1 && static_cast<uint8_t>(digits.back()) == 0xff &&
           static_cast<uint8_t>(digits[digits.size() - 2]) >= 0x80) {
      digits.pop_back();
    }
  }
  return digits;
}

}  // namespace lockstep::formats
