// Changes the sign of numbers that lie in memory as a file has them.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/formats/dtype.h"

namespace lockstep::formats {

bool is_complex(DType dtype);

// Complex, or floating point.
bool has_sign_bit(DType dtype);

// Both expect complete elements of that type.
void negate(DType dtype, std::span<std::byte> numbers);     // has_sign_bit()
void conjugate(DType dtype, std::span<std::byte> numbers);  // is_complex()

}  // namespace lockstep::formats
