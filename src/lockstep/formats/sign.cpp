#include "lockstep/formats/sign.h"

namespace lockstep::formats {
namespace {

// Flips the last bit of the part that ends at `first`, and of every part that
// is `step` bytes further: the sign, for numbers are little-endian.
void flip(std::span<std::byte> bytes, size_t first, size_t step) {
  for (size_t end = first; end <= bytes.size(); end += step) {
    bytes[end - 1] ^= std::byte{0x80};
  }
}

}  // namespace

bool is_complex(DType dtype) {
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

bool has_sign_bit(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2: return true;
    default: return is_complex(dtype);
  }
}

void negate(DType dtype, std::span<std::byte> numbers) {
  const auto size =
      static_cast<size_t>(size_bytes(dtype)) / (is_complex(dtype) ? 2 : 1);
  flip(numbers, size, size);
}

void conjugate(DType dtype, std::span<std::byte> numbers) {
  const auto size = static_cast<size_t>(size_bytes(dtype));
  flip(numbers, size, size);
}

}  // namespace lockstep::formats
