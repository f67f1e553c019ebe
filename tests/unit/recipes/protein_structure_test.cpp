#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "lockstep/datasets/proteins/generated.h"
#include "lockstep/datasets/proteins/structure.h"
#include "lockstep/error.h"
#include "lockstep/random.h"
#include "support/messages.h"
#include "support/protein_files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::AtomLine;
using testing::chain_atoms;
using Atoms = std::vector<AtomLine>;

std::string as_pdb(const Atoms& atoms) { return testing::pdb_text(atoms); }
std::string as_mmcif(const Atoms& atoms) { return testing::mmcif_text(atoms); }

// Every test reads the same atoms in both formats.
class StructureOf
    : public ::testing::TestWithParam<std::string (*)(const Atoms&)> {
 protected:
  static proteins::Structure read(const Atoms& atoms) {
    return proteins::read_structure(GetParam()(atoms), "folder/1abc.file");
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, StructureOf,
                         ::testing::Values(&as_pdb, &as_mmcif),
                         [](const auto& instance) {
                           return instance.param == &as_pdb ? "Pdb" : "Mmcif";
                         });

Atoms residue_atoms(const std::string& type, int number) {
  Atoms atoms;
  double x = 3.8 * number;
  for (const std::string name : {"N", "CA", "C", "O", "CB"}) {
    atoms.push_back({.name = name,
                     .residue = type,
                     .number = number,
                     .place = {x, 0.5 * x, std::sin(x)}});
    x += 1;
  }
  return atoms;
}

Atoms operator+(Atoms a, const Atoms& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_P(StructureOf, AChainIsThatChain) {
  for (int64_t index = 0; index < 5; ++index) {
    const proteins::Structure expected =
        proteins::generated_structure({.seed = 7}, index);
    const proteins::Structure structure = read(chain_atoms(index));
    EXPECT_EQ(structure.residue_types, expected.residue_types);
    EXPECT_EQ(structure.residue_ids, expected.residue_ids);
    EXPECT_EQ(structure.chain, "A");
    EXPECT_EQ(structure.num_skipped, 0);
    ASSERT_EQ(structure.backbone.size(), expected.backbone.size());
    for (size_t i = 0; i < expected.backbone.size(); ++i) {
      ASSERT_NEAR(structure.backbone[i], expected.backbone[i], 6e-4);
    }
    for (size_t i = 0; i < expected.chi1.size(); ++i) {
      ASSERT_EQ(std::isnan(structure.chi1[i]), std::isnan(expected.chi1[i]));
      if (std::isnan(expected.chi1[i])) continue;
      const double difference = structure.chi1[i] - expected.chi1[i];
      ASSERT_NEAR(std::remainder(difference, 2 * std::numbers::pi), 0, 2e-3);
    }
  }
}

TEST_P(StructureOf, OfAlternatePlacesTheHighestOccupancyCountsThenTheFirst) {
  Atoms atoms = residue_atoms("ALA", 1) + residue_atoms("SER", 2);
  AtomLine other = atoms[1];
  atoms[1].altloc = 'A';
  atoms[1].occupancy = 0.4;
  other.altloc = 'B';
  other.occupancy = 0.6;
  other.place[0] += 0.25;
  const double expected = other.place[0];
  atoms.insert(atoms.begin() + 2, other);
  EXPECT_NEAR(read(atoms).backbone[3], expected, 1e-3);
  atoms[1].occupancy = 0.5;
  atoms[2].occupancy = 0.5;
  EXPECT_NEAR(read(atoms).backbone[3], expected - 0.25, 1e-3);
}

TEST_P(StructureOf, OfAlternateResiduesOneCounts) {
  Atoms first = residue_atoms("SER", 2);
  Atoms second = residue_atoms("THR", 2);
  for (AtomLine& atom : first) {
    atom.altloc = 'A';
    atom.occupancy = 0.3;
  }
  for (AtomLine& atom : second) {
    atom.altloc = 'B';
    atom.occupancy = 0.7;
  }
  const proteins::Structure structure =
      read(residue_atoms("ALA", 1) + first + second + residue_atoms("VAL", 3));
  EXPECT_EQ(structure.residue_types,
            (std::vector<std::string>{"ALA", "THR", "VAL"}));
}

TEST_P(StructureOf, InsertionCodesAreResiduesOfTheirOwn) {
  Atoms inserted = residue_atoms("SER", 5);
  for (AtomLine& atom : inserted) atom.insertion = 'A';
  const proteins::Structure structure =
      read(residue_atoms("ALA", 5) + inserted + residue_atoms("VAL", 6));
  EXPECT_EQ(structure.residue_types,
            (std::vector<std::string>{"ALA", "SER", "VAL"}));
  EXPECT_EQ(structure.residue_ids, (std::vector<std::string>{"5", "5A", "6"}));
}

TEST_P(StructureOf, NumbersMayBeNegative) {
  const proteins::Structure structure =
      read(residue_atoms("ALA", -3) + residue_atoms("VAL", 0));
  EXPECT_EQ(structure.residue_ids, (std::vector<std::string>{"-3", "0"}));
}

TEST_P(StructureOf, SeveralModelsAreTheFirst) {
  Atoms second = residue_atoms("SER", 1) + residue_atoms("SER", 2);
  for (AtomLine& atom : second) atom.model = 2;
  const proteins::Structure structure =
      read(residue_atoms("ALA", 1) + residue_atoms("VAL", 2) + second);
  EXPECT_EQ(structure.residue_types, (std::vector<std::string>{"ALA", "VAL"}));
}

TEST_P(StructureOf, OnlyTheFirstChainCounts) {
  Atoms other = residue_atoms("SER", 1);
  for (AtomLine& atom : other) atom.chain = "B";
  Atoms water = {{.name = "O",
                  .residue = "HOH",
                  .number = 301,
                  .place = {9, 9, 9},
                  .is_hetero = true}};
  Atoms ligand = {{.name = "C1",
                   .residue = "LIG",
                   .number = 300,
                   .place = {8, 9, 9},
                   .is_hetero = true}};
  const proteins::Structure structure =
      read(residue_atoms("ALA", 1) + other + ligand + water);
  EXPECT_EQ(structure.residue_types, std::vector<std::string>{"ALA"});
  EXPECT_EQ(structure.num_skipped, 1);
}

Atoms of_chain(Atoms atoms, const std::string& name) {
  for (AtomLine& atom : atoms) atom.chain = name;
  return atoms;
}

Atoms dna(const std::string& chain) {
  Atoms atoms;
  for (const int number : {1, 2, 3}) {
    for (const std::string name : {"P", "C1'", "N1"}) {
      atoms.push_back({.name = name, .residue = "DA", .number = number});
    }
  }
  return of_chain(atoms, chain);
}

// The PDB file of an entry has its chains in another order than the mmCIF file.
TEST_P(StructureOf, TheChainDoesNotDependOnTheOrderInTheFile) {
  const Atoms a = residue_atoms("ALA", 1);
  const Atoms b = of_chain(residue_atoms("SER", 1), "B");
  for (const Atoms& atoms : {a + b, b + a}) {
    EXPECT_EQ(read(atoms).chain, "A");
    EXPECT_EQ(read(atoms).residue_types, std::vector<std::string>{"ALA"});
  }
}

TEST_P(StructureOf, AProteinIsPreferredToDna) {
  const Atoms protein = of_chain(residue_atoms("SER", 1), "C");
  for (const Atoms& atoms : {dna("A") + protein, protein + dna("A")}) {
    EXPECT_EQ(read(atoms).chain, "C");
  }
  // An amino acid that is bound to DNA makes no protein of it.
  const Atoms bound = residue_atoms("GLY", 9);
  EXPECT_EQ(read(dna("A") + bound + protein).chain, "C");
  EXPECT_EQ(read(dna("A") + bound).chain, "A");
  // A chain of whole residues comes before one that has none.
  EXPECT_EQ(read(Atoms{{.residue = "ALA"}} + protein).chain, "C");
}

TEST_P(StructureOf, ResiduesThatAreOthersOrIncompleteAreSkipped) {
  for (size_t missing = 0; missing < 4; ++missing) {
    Atoms incomplete = residue_atoms("LEU", 2);
    incomplete.erase(incomplete.begin() + static_cast<int64_t>(missing));
    Atoms selenium = residue_atoms("MSE", 3);
    for (AtomLine& atom : selenium) atom.is_hetero = true;
    const proteins::Structure structure =
        read(residue_atoms("ALA", 1) + incomplete + selenium +
             residue_atoms("VAL", 4));
    EXPECT_EQ(structure.residue_types,
              (std::vector<std::string>{"ALA", "VAL"}));
    EXPECT_EQ(structure.num_skipped, 2);
  }
}

TEST_P(StructureOf, HydrogensChangeNothing) {
  Atoms atoms = chain_atoms();
  const proteins::Structure expected = read(atoms);
  Atoms with;
  for (const AtomLine& atom : atoms) {
    with.push_back(atom);
    AtomLine hydrogen = atom;
    hydrogen.name = "H" + atom.name;
    hydrogen.place[2] += 1;
    with.push_back(hydrogen);
  }
  const proteins::Structure structure = read(with);
  EXPECT_EQ(structure.backbone, expected.backbone);
  EXPECT_EQ(structure.residue_types, expected.residue_types);
}

TEST_P(StructureOf, AMissingSideChainAtomMeansNoTorsion) {
  Atoms atoms = residue_atoms("SER", 1) + residue_atoms("SER", 2);
  AtomLine oxygen = atoms[4];
  oxygen.name = "OG";
  oxygen.place[1] += 1.1;
  atoms.insert(atoms.begin() + 5, oxygen);
  const proteins::Structure structure = read(atoms);
  EXPECT_FALSE(std::isnan(structure.chi1[0]));
  EXPECT_TRUE(std::isnan(structure.chi1[1]));
}

std::string structure_refusal(const std::string& bytes) {
  return testing::refusal<FormatError>(
      [&] { proteins::read_structure(bytes, "folder/1abc.pdb"); });
}

TEST_P(StructureOf, ChainsWithoutAResidueThatCountsAreRefusedByName) {
  const std::string text =
      structure_refusal(GetParam()({{.name = "P", .residue = "DA"}}));
  EXPECT_NE(text.find("folder/1abc.pdb"), std::string::npos) << text;
  EXPECT_NE(text.find("20 amino acids"), std::string::npos) << text;
}

TEST_P(StructureOf, WhatIsMissingIsSaid) {
  EXPECT_NE(structure_refusal(GetParam()(dna("B")))
                .find("chain 'B': it consists of DA"),
            std::string::npos);
  const std::string text = structure_refusal(GetParam()({{.residue = "ALA"}}));
  EXPECT_NE(
      text.find("none of its 1 amino acids is whole, missing are C, N, O"),
      std::string::npos)
      << text;
}

TEST_P(StructureOf, CoordinatesThatAreNoNumbersAreRefused) {
  Atoms atoms = residue_atoms("ALA", 1);
  atoms[2].place[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(structure_refusal(GetParam()(atoms)).find("finite"),
            std::string::npos);
}

TEST_P(StructureOf, EveryBeginningIsReadOrRefused) {
  const std::string text =
      GetParam()(residue_atoms("SER", 1) + residue_atoms("LEU", 2));
  for (size_t size = 0; size <= text.size(); ++size) {
    const std::string part = text.substr(0, size);
    const std::string error = structure_refusal(part);
    if (error == "accepted") continue;
    ASSERT_NE(error.find("1abc"), std::string::npos) << size;
  }
  const std::string zipped = testing::gzipped(text);
  EXPECT_EQ(structure_refusal(zipped), "accepted");
  for (size_t size = 0; size < zipped.size(); ++size) {
    ASSERT_NE(structure_refusal(zipped.substr(0, size)), "accepted") << size;
  }
}

TEST_P(StructureOf, DamagedBytesAreReadOrRefused) {
  const std::string text = GetParam()(chain_atoms());
  RandomStream draw(11);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = text;
    for (int64_t i = 1 + draw.integer(20); i > 0; --i) {
      const auto at =
          static_cast<size_t>(draw.integer(std::ssize(damaged) - 8));
      switch (draw.integer(3)) {
        case 0: damaged[at] = static_cast<char>(draw.bits()); break;
        case 1: damaged.erase(at, static_cast<size_t>(draw.integer(8))); break;
        default:
          damaged.insert(at, 1, static_cast<char>(' ' + draw.integer(90)));
      }
    }
    structure_refusal(damaged);  // No other error, no crash.
  }
}

TEST(Structure, IsToldByItsContentNotByItsName) {
  const testing::TempDir folder;
  const Atoms atoms = chain_atoms();
  const std::string pdb = testing::pdb_text(atoms);
  const proteins::Structure expected = proteins::read_structure(pdb, "x");
  const std::string cif = testing::mmcif_text(atoms);
  for (const auto& [name, bytes] :
       std::vector<std::pair<std::string, std::string>>{
           {"a.pdb", pdb},
           {"a.cif", cif},
           {"a.pdb.gz", testing::gzipped(pdb)},
           {"a.cif.gz", testing::gzipped(cif)},
           {"b.pdb", cif},
           {"b.cif", testing::gzipped(pdb)},
           {"b.ent.gz", cif}}) {
    const proteins::Structure structure =
        proteins::read_structure(folder.write(name, bytes));
    EXPECT_EQ(structure.backbone, expected.backbone) << name;
    EXPECT_EQ(structure.name, name.substr(0, 1));
  }
}

TEST(Structure, OtherFilesAreRefusedByName) {
  for (const std::string& bytes :
       {std::string(), std::string("\n\n"), std::string("hello\nworld\n"),
        std::string("data_x\n"), std::string("data_x\n_entry.id x\n"),
        std::string(100, '\0'), std::string("\x1f\x8b garbage"),
        std::string("{\"data\": 1}"), testing::gzipped(""),
        testing::gzipped(std::string(64 << 20, ' '))}) {
    const std::string text = structure_refusal(bytes);
    EXPECT_NE(text.find("folder/1abc.pdb"), std::string::npos)
        << bytes.substr(0, 20) << text;
  }
  const testing::TempDir folder;
  EXPECT_THROW(proteins::read_structure(folder.path() / "none.pdb"), IoError);
}

TEST(Structure, StatesResolutionAndMethod) {
  const Atoms atoms = residue_atoms("ALA", 1);
  const proteins::Structure pdb = proteins::read_structure(
      "EXPDTA    X-RAY DIFFRACTION\n"
      "REMARK   2\n"
      "REMARK   2 RESOLUTION.    1.74 ANGSTROMS.\n" +
          testing::pdb_text(atoms),
      "x.pdb");
  EXPECT_DOUBLE_EQ(pdb.resolution, 1.74);
  EXPECT_EQ(pdb.method, "X-RAY DIFFRACTION");
  const std::string cif = testing::mmcif_text(atoms);
  const std::string head = cif.substr(0, cif.find("loop_"));
  const std::string rest = cif.substr(head.size());
  const proteins::Structure crystal = proteins::read_structure(
      head + "_refine.pdbx_refine_id 1\n_refine.ls_d_res_high 2.10\n" + rest,
      "x.cif");
  EXPECT_DOUBLE_EQ(crystal.resolution, 2.1);
  const proteins::Structure microscope = proteins::read_structure(
      head + "_em_3d_reconstruction.resolution 3.3\n" + rest, "x.cif");
  EXPECT_DOUBLE_EQ(microscope.resolution, 3.3);
  EXPECT_EQ(proteins::read_structure(cif, "x.cif").resolution, 0);
}

TEST(Structure, NamesLoseTheirEndings) {
  EXPECT_EQ(proteins::structure_name("a/pdb1abc.ent.gz"), "pdb1abc");
  EXPECT_EQ(proteins::structure_name("1abc.CIF"), "1abc");
  EXPECT_EQ(proteins::structure_name("1abc.A.pt"), "1abc.A");
  EXPECT_EQ(proteins::structure_name("1abc"), "1abc");
  EXPECT_TRUE(proteins::is_structure_name("x.PDB.GZ"));
  EXPECT_TRUE(proteins::is_structure_name("x.mmcif"));
  EXPECT_FALSE(proteins::is_structure_name("x.pt"));
  EXPECT_FALSE(proteins::is_structure_name("cif"));
}

TEST(Structure, CountsBreaksOfTheChain) {
  proteins::Structure structure = proteins::generated_structure({.seed = 7}, 0);
  EXPECT_EQ(proteins::count_chain_breaks(structure.backbone, 4.5), 0);
  structure.backbone.erase(structure.backbone.begin() + 60,
                           structure.backbone.begin() + 84);
  EXPECT_EQ(proteins::count_chain_breaks(structure.backbone, 4.5), 1);
}

}  // namespace
}  // namespace lockstep
