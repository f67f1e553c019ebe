// Two normal numbers from uniform bits, with the same bits everywhere.
//
// The logarithm, sine and cosine of a C library differ in their last bit from
// version to version and from those of CUDA. Here they are series of nothing
// but + - * / and square roots, which IEEE 754 rounds alike on every machine.
// Only a fused multiply-add would change a bit: files that include this header
// are compiled without (CMakeLists.txt beside it).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "lockstep/tensor/philox.h"

namespace lockstep::tensor {

struct NormalPair {
  double first;
  double second;
};

// The natural logarithm of x in (0, 1].
LOCKSTEP_HOST_DEVICE double log_of_unit(double x) {
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)).
  constexpr uint64_t kBitsOfSqrtHalf = 0x3fe6a09e667f3bcdULL;
  uint64_t bits = 0;
  memcpy(&bits, &x, sizeof(bits));
  const auto exponent =
      static_cast<int>(static_cast<int64_t>(bits - kBitsOfSqrtHalf) >> 52);
  bits -= static_cast<uint64_t>(static_cast<int64_t>(exponent)) << 52;
  double m = 0;
  memcpy(&m, &bits, sizeof(m));
  // log m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172.
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double sum = 1.0 / 21;
  for (int n = 19; n > 0; n -= 2) sum = 1.0 / n + z * sum;
  constexpr double kLog2 = 0.693147180559945309417;
  return exponent * kLog2 + 2 * s * sum;
}

// Box-Muller. `uniform` in (0, 1] gives the distance from the origin. The
// direction is given by an octant, of which only the lowest three bits count,
// and a position in it, in (0, 1): sine and cosine of less than an eighth of a
// turn are accurate also where they are small.
LOCKSTEP_HOST_DEVICE NormalPair normal_pair(double uniform, double position,
                                            uint64_t octant) {
  constexpr double kEighthTurn = 0.785398163397448309616;
  const double angle = position * kEighthTurn;
  const double z = angle * angle;
  double cosine = 1;
  double sine = 1;
  for (int n = 16; n > 0; n -= 2) {
    cosine = 1 - z * (1.0 / (n * (n - 1))) * cosine;
    sine = 1 - z * (1.0 / (n * (n + 1))) * sine;
  }
  const double radius = sqrt(-2 * log_of_unit(uniform));
  const double x = radius * cosine;
  const double y = radius * (angle * sine);
  const double first = (octant & 1) != 0 ? y : x;
  const double second = (octant & 1) != 0 ? x : y;
  return {(octant & 2) != 0 ? -first : first,
          (octant & 4) != 0 ? -second : second};
}

// From 32 bits each: four values of a block become four normal numbers.
LOCKSTEP_HOST_DEVICE NormalPair normal_pair(uint32_t distance,
                                            uint32_t direction) {
  return normal_pair((distance + 1.0) * 0x1p-32,
                     ((direction >> 3) + 0.5) * 0x1p-29, direction);
}

// From 64 bits each, of which 53 count: for numbers used as double.
LOCKSTEP_HOST_DEVICE NormalPair normal_pair(uint64_t distance,
                                            uint64_t direction) {
  return normal_pair(static_cast<double>((distance >> 11) + 1) * 0x1p-53,
                     (static_cast<double>(direction >> 14) + 0.5) * 0x1p-50,
                     direction);
}

}  // namespace lockstep::tensor
