// Structures in real formats, atom by atom, for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/datasets/proteins/generated.h"

namespace lockstep::testing {

// One atom of a file, as a line of PDB describes it.
struct AtomLine {
  std::string name = "CA";
  std::string residue = "ALA";
  std::string chain = "A";
  int number = 1;
  char insertion = ' ';
  char altloc = ' ';
  double occupancy = 1;
  protein::Point3 place = {};
  int model = 1;
  bool is_hetero = false;
};

// Residues are numbered from 1.
std::vector<AtomLine> atom_lines(
    const std::vector<proteins::GeneratedResidue>& chain);

// Those of a generated chain, always the same one for an index.
std::vector<AtomLine> chain_atoms(int64_t index = 0);

// With MODEL and ENDMDL where there are several models.
std::string pdb_text(std::span<const AtomLine> atoms);

std::string mmcif_text(std::span<const AtomLine> atoms);

std::string gzipped(const std::string& bytes);

}  // namespace lockstep::testing
