#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "lockstep/datasets/proteins/generated.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"

namespace lockstep {
namespace {

constexpr double kPi = std::numbers::pi;

TEST(ProteinVocabulary, IsThatOfTheOriginal) {
  std::vector<int64_t> all;
  for (const std::string_view residue : protein::residue_types()) {
    const auto fragments = protein::fragments_of(residue);
    all.insert(all.end(), fragments.begin(), fragments.end());
  }
  const std::vector<int64_t> expected = {
      4, 5,  5, 5, 11, 5, 10, 5, 9, 14, 5,  5, 10, 5, 5,  9, 5,  12,
      5, 15, 4, 5, 4,  5, 15, 4, 4, 5,  5,  5, 5,  8, 5,  5, 14, 4,
      5, 7,  5, 5, 5,  6, 15, 6, 4, 5,  13, 5, 7,  6, 15, 4, 4};
  EXPECT_EQ(all, expected);
  EXPECT_TRUE(protein::fragments_of("GLY").empty());
  EXPECT_TRUE(protein::fragments_of("MSE").empty());
  EXPECT_TRUE(protein::is_residue_type("GLY"));
  EXPECT_FALSE(protein::is_residue_type("MSE"));
  EXPECT_FALSE(protein::is_residue_type(""));
  EXPECT_EQ(protein::fragment_name(protein::kMaskFragment), "MASK");
  EXPECT_EQ(protein::fragment_name(15), "BRANCH_CH");
  EXPECT_EQ(protein::chi1_atom("ILE"), "CG1");
  EXPECT_EQ(protein::chi1_atom("THR"), "OG1");
  EXPECT_EQ(protein::chi1_atom("ALA"), "");
}

TEST(Torsion, HasTheSignOfTheConvention) {
  const protein::Point3 a = {1, 0, 0};
  const protein::Point3 b = {0, 0, 0};
  const protein::Point3 c = {0, 0, 1};
  EXPECT_NEAR(protein::dihedral(a, b, c, {1, 0, 1}), 0, 1e-12);
  EXPECT_NEAR(protein::dihedral(a, b, c, {0, 1, 1}), kPi / 2, 1e-12);
  EXPECT_NEAR(protein::dihedral(a, b, c, {0, -1, 1}), -kPi / 2, 1e-12);
  EXPECT_NEAR(std::abs(protein::dihedral(a, b, c, {-1, 0, 1})), kPi, 1e-12);
  EXPECT_EQ(protein::dihedral(a, b, c, {0, 0, 2}), 0);
}

TEST(Torsion, PlacesAtomsSoThatTheyAreMeasuredAgain) {
  const protein::Point3 a = {0.3, -1.2, 0.4};
  const protein::Point3 b = {1.1, 0.2, -0.1};
  const protein::Point3 c = {2.0, 0.9, 1.0};
  for (double torsion = -3; torsion < 3.1; torsion += 0.37) {
    const protein::Point3 d = protein::place_atom(
        a, b, c, {.length = 1.5, .angle = 1.9, .torsion = torsion});
    EXPECT_NEAR(protein::dihedral(a, b, c, d), torsion, 1e-9);
    EXPECT_NEAR(protein::distance(c, d), 1.5, 1e-9);
  }
}

TEST(Torsion, BinsAreFiveDegreesWideAndPiIsInTheFirst) {
  EXPECT_EQ(protein::torsion_bin(-kPi), 0);
  EXPECT_EQ(protein::torsion_bin(kPi), 0);
  EXPECT_EQ(protein::torsion_bin(0), 36);
  EXPECT_EQ(protein::torsion_bin(-1e-9), 35);
  EXPECT_EQ(protein::torsion_bin(kPi - 1e-9), 71);
  for (int64_t bin = 0; bin < protein::kNumTorsionBins; ++bin) {
    EXPECT_EQ(protein::torsion_bin(protein::bin_angle(bin)), bin);
  }
}

TEST(GeneratedChain, IsEqualForEqualNumbersAndHasIdealBonds) {
  const proteins::GeneratedChainConfig config{.seed = 3};
  const auto chain = proteins::generated_chain(config, 5);
  const auto again = proteins::generated_chain(config, 5);
  const auto other = proteins::generated_chain(config, 6);
  ASSERT_EQ(chain.size(), again.size());
  EXPECT_NE(chain[3].atoms[0].place, other[3].atoms[0].place);
  ASSERT_GE(chain.size(), 30U);
  ASSERT_LE(chain.size(), 80U);
  for (size_t i = 0; i < chain.size(); ++i) {
    EXPECT_EQ(chain[i].atoms[2].place, again[i].atoms[2].place);
    const auto& atoms = chain[i].atoms;
    EXPECT_NEAR(protein::distance(atoms[0].place, atoms[1].place), 1.458, 1e-6);
    EXPECT_NEAR(protein::distance(atoms[1].place, atoms[2].place), 1.525, 1e-6);
    EXPECT_NEAR(protein::distance(atoms[2].place, atoms[3].place), 1.231, 1e-6);
    if (i == 0) continue;
    const auto& last = chain[i - 1].atoms;
    EXPECT_NEAR(protein::distance(last[2].place, atoms[0].place), 1.329, 1e-6);
    // A flat bond, with O on the other side than the next N.
    const double omega = protein::dihedral(last[1].place, last[2].place,
                                           atoms[0].place, atoms[1].place);
    EXPECT_NEAR(std::abs(omega), kPi, 1e-6);
    EXPECT_NEAR(protein::distance(last[1].place, atoms[1].place), 3.8, 0.1);
    EXPECT_GT(protein::distance(last[3].place, atoms[0].place), 2.1);
  }
}

TEST(GeneratedChain, HelicesAreRightHandedAndResiduesLeftHanded) {
  // Any helix of 6 residues or more has i to i + 3 about 5 A apart.
  int helical = 0;
  for (int64_t index = 0; index < 20; ++index) {
    const auto chain = proteins::generated_chain({.seed = 1}, index);
    for (size_t i = 0; i + 3 < chain.size(); ++i) {
      const double torsion = protein::dihedral(
          chain[i].atoms[1].place, chain[i + 1].atoms[1].place,
          chain[i + 2].atoms[1].place, chain[i + 3].atoms[1].place);
      if (std::abs(torsion - 0.87) < 0.2) ++helical;  // 50 degrees.
      if (chain[i].type == "GLY") continue;
      const auto& atoms = chain[i].atoms;
      // Improper torsion of L-amino acids.
      EXPECT_LT(protein::dihedral(atoms[2].place, atoms[0].place,
                                  atoms[1].place, atoms[4].place),
                0);
    }
  }
  EXPECT_GT(helical, 100);
}

}  // namespace
}  // namespace lockstep
