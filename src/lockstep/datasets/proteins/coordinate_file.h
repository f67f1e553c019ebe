// The atoms of coordinate files, as they stand there. All use of gemmi is
// behind this header.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace lockstep::proteins {

struct FileAtom {
  std::string name = {};  // "CA"
  double occupancy = 1;
  std::array<double, 3> place = {};  // Angstrom; may be NaN.
};

struct FileResidue {
  std::string name = {};  // "ALA", "HOH"
  std::string id = {};    // Number and insertion code: "12", "12A".
  bool is_water = false;
  std::vector<FileAtom> atoms = {};  // With all alternate places.
};

// One chain of the first model; alternate residues of one id follow each other.
struct FileChain {
  std::string name = {};  // "A"
  std::vector<FileResidue> residues = {};
  double resolution = 0;    // Angstrom; 0: not stated.
  std::string method = {};  // "X-RAY DIFFRACTION"
};

// Returns the protein chain that is first by name ("A" before "B"): the order
// in the file differs between the PDB and the mmCIF file of an entry. Both
// throw FormatError, without a path, for files without such a chain. A
// coordinate that is not a number becomes 0 in PDB and NaN in mmCIF.
FileChain parse_pdb(const std::string& text);
FileChain parse_mmcif(const std::string& text);

}  // namespace lockstep::proteins
