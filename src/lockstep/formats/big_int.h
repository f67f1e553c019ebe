// Integers of any size, between decimal text and pickle's bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::formats {

// From two's complement, little-endian, as pickle's LONG1 has it; no bytes are
// 0.
std::string decimal_from_bytes(std::span<const std::byte> bytes);

// The shortest such bytes. Throws FormatError when the text is not an integer.
std::string bytes_from_decimal(std::string_view decimal);

}  // namespace lockstep::formats
