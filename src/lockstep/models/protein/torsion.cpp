#include "lockstep/models/protein/torsion.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "lockstep/error.h"

namespace lockstep::protein {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kBinWidth = 2 * kPi / kNumTorsionBins;

Point3 minus(const Point3& a, const Point3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

double dot(const Point3& a, const Point3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Point3 cross(const Point3& a, const Point3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
          a[0] * b[1] - a[1] * b[0]};
}

Point3 unit(const Point3& a) {
  const double length = std::sqrt(dot(a, a));
  return {a[0] / length, a[1] / length, a[2] / length};
}

}  // namespace

double distance(const Point3& a, const Point3& b) {
  const Point3 between = minus(a, b);
  return std::sqrt(dot(between, between));
}

double dihedral(const Point3& a, const Point3& b, const Point3& c,
                const Point3& d) {
  const Point3 first = minus(b, a);
  const Point3 axis = minus(c, b);
  const Point3 last = minus(d, c);
  const Point3 left = cross(first, axis);
  const Point3 right = cross(axis, last);
  const double sine = std::sqrt(dot(axis, axis)) * dot(first, right);
  return std::atan2(sine, dot(left, right));
}

// The frame of the bond b-c: along it, within the plane of a, and across.
Point3 place_atom(const Point3& a, const Point3& b, const Point3& c,
                  const BondPlace& bond) {
  const Point3 along = unit(minus(c, b));
  const Point3 across = unit(cross(minus(b, a), along));
  const Point3 within = cross(across, along);
  const double radius = bond.length * std::sin(bond.angle);
  Point3 position = c;
  for (size_t i = 0; i < 3; ++i) {
    position[i] += -bond.length * std::cos(bond.angle) * along[i] +
                   radius * std::cos(bond.torsion) * within[i] +
                   radius * std::sin(bond.torsion) * across[i];
  }
  return position;
}

int64_t torsion_bin(double angle) {
  LOCKSTEP_CHECK(std::abs(angle) <= kPi, fmt::format("angle {}", angle));
  const auto bin = static_cast<int64_t>(std::floor((angle + kPi) / kBinWidth));
  return bin % kNumTorsionBins;
}

double bin_angle(int64_t bin) {
  return -kPi + (static_cast<double>(bin) + 0.5) * kBinWidth;
}

}  // namespace lockstep::protein
