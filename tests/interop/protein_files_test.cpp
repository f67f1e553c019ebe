// Python reads our files of proteins and we read the original's; both sides
// read the structures on their own. The other side is python/protein_files.py.
#include "support/protein_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/datasets/proteins/cache_file.h"
#include "lockstep/datasets/proteins/generated.h"
#include "lockstep/models/protein/vocabulary.h"
#include "lockstep/random.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::AtomLine;

// A chain with all that real files have: alternate places, insertion codes,
// hydrogens, residues of other kinds, missing atoms, a second chain and model.
std::vector<AtomLine> untidy_atoms(int64_t index) {
  RandomStream draw(static_cast<uint64_t>(index));
  std::vector<AtomLine> atoms;
  for (AtomLine atom :
       testing::atom_lines(proteins::generated_chain({.seed = 9}, index))) {
    if (draw.chance(0.02)) continue;
    if (atom.number % 11 == 3) {
      atom.number -= 1;
      atom.insertion = 'A';
    }
    if (atom.number % 17 == 5) {
      atom.residue = "MSE";
      atom.is_hetero = true;
    }
    const bool has_alternate = draw.chance(0.1);
    if (has_alternate) {
      atom.altloc = 'A';
      atom.occupancy = draw.chance(0.5) ? 0.5 : 0.35;
    }
    atoms.push_back(atom);
    if (has_alternate) {
      atom.altloc = 'B';
      atom.occupancy = 1 - atom.occupancy;
      atom.place[1] += 0.3;
      atoms.push_back(atom);
    }
    if (draw.chance(0.3)) {
      atom.name = "H" + atom.name;
      atoms.push_back(atom);
    }
  }
  const size_t count = atoms.size();
  for (size_t i = 0; i < 50; ++i) {
    AtomLine other = atoms[i];
    other.chain = "B";
    atoms.push_back(other);
  }
  for (size_t i = 0; i < count; ++i) {
    AtomLine other = atoms[i];
    other.model = 2;
    other.place[0] += 1;
    atoms.push_back(other);
  }
  return atoms;
}

int64_t num_with_chi1(const proteins::Protein& protein) {
  return std::ranges::count_if(protein.residue_types,
                               [](const std::string& type) {
                                 return !protein::chi1_atom(type).empty();
                               });
}

void run_python(const std::string& task, const testing::TempDir& folder) {
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/protein_files.py", task,
                    folder.path().string()});
  ASSERT_EQ(python.exit_code, 0) << python.err;
}

TEST(ProteinFilesInterop, PythonReadsOursAndSeesTheSameStructures) {
  const testing::TempDir folder;
  for (int64_t i = 0; i < 12; ++i) {
    const std::string path = folder.write(fmt::format("p{}.pdb", i),
                                          testing::pdb_text(untidy_atoms(i)));
    proteins::write_protein_file(
        folder.path() / fmt::format("p{}.pt", i),
        proteins::make_protein(proteins::read_structure(path), path));
  }
  run_python("check", folder);
}

TEST(ProteinFilesInterop, WeReadThoseOfTheOriginal) {
  const testing::TempDir folder;
  for (int64_t i = 0; i < 6; ++i) {
    // Every other one has whole side chains, as alignment needs.
    const std::vector<AtomLine> atoms =
        i % 2 == 0
            ? untidy_atoms(i)
            : testing::atom_lines(proteins::generated_chain({.seed = 9}, i));
    folder.write(fmt::format("p{}.pdb", i), testing::pdb_text(atoms));
  }
  run_python("write", folder);
  int num_whole = 0;
  for (int64_t i = 0; i < 6; ++i) {
    const auto path = folder.path() / fmt::format("p{}.pdb", i);
    const proteins::Protein ours =
        proteins::make_protein(proteins::read_structure(path), path);
    const proteins::Protein theirs = proteins::read_protein_file(
        folder.path() / fmt::format("p{}.original.pt", i));
    EXPECT_EQ(theirs.source, ours.source);
    EXPECT_EQ(theirs.residue_types, ours.residue_types);
    EXPECT_EQ(theirs.backbone, ours.backbone);
    EXPECT_EQ(theirs.fragments, ours.fragments);
    EXPECT_EQ(theirs.fragment_residues, ours.fragment_residues);
    EXPECT_EQ(theirs.torsion_bins, ours.torsion_bins);
    EXPECT_FALSE(theirs.resolution);
    // Without gaps there is only one way to align them.
    const bool is_whole = std::ssize(ours.torsion_bins) == num_with_chi1(ours);
    EXPECT_EQ(theirs.torsion_residues.has_value(), is_whole);
    if (!is_whole) continue;
    ++num_whole;
    EXPECT_EQ(theirs.torsion_residues, ours.torsion_residues);
    EXPECT_EQ(proteins::torsion_targets(theirs),
              proteins::torsion_targets(ours));
  }
  EXPECT_GE(num_whole, 3);
  EXPECT_LT(num_whole, 6);
}

}  // namespace
}  // namespace lockstep
