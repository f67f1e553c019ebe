// Torsion angles and their bins.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::protein {

using Point3 = std::array<double, 3>;

double distance(const Point3& a, const Point3& b);

// The angle of torsion about the bond b-c, in (-pi, pi]; positive when, seen
// along the bond, d is clockwise of a. 0 where three points lie on a line.
double dihedral(const Point3& a, const Point3& b, const Point3& c,
                const Point3& d);

// The position of d for a bond c-d of that length, the angle b-c-d and the
// torsion a-b-c-d, both in radians.
struct BondPlace {
  double length = 0;
  double angle = 0;
  double torsion = 0;
};
Point3 place_atom(const Point3& a, const Point3& b, const Point3& c,
                  const BondPlace& bond);

constexpr int64_t kNumTorsionBins = 72;

// floor((angle + pi) / (2 pi / 72)); pi itself is in bin 0. The angle must lie
// in [-pi, pi].
int64_t torsion_bin(double angle);

// The middle of a bin, in radians.
double bin_angle(int64_t bin);

}  // namespace lockstep::protein
