// Protein structures from PDB and mmCIF files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::proteins {

// A protein chain of the first model, the first one by name ("A" before "B"):
// those of its residues that are among the 20 amino acids and have N, CA, C and
// O. Vectors have one entry per residue.
struct Structure {
  std::string name = {};                        // "1abc" of "pdb/1abc.cif.gz".
  std::string chain = {};                       // "A"; some files give none.
  std::vector<std::string> residue_types = {};  // "ALA"
  std::vector<std::string> residue_ids = {};    // "12", "12A"
  std::vector<float> backbone = {};  // [L, 4, 3]: N, CA, C, O in Angstrom.
  std::vector<double> chi1 = {};     // Radians; NaN where there is none.
  int64_t num_skipped =
      0;                  // Residues of the chain that do not count; no water.
  double resolution = 0;  // Angstrom; 0: not known, as for NMR and models.
  std::string method = {};  // "X-RAY DIFFRACTION"; may be empty.

  int64_t num_residues() const {
    return static_cast<int64_t>(residue_types.size());
  }
};

// Reads a PDB or mmCIF file, plain or compressed by gzip, recognised by
// content. Among alternate places of an atom the one with the highest occupancy
// counts, then the first; among alternate residues the same by their CA.
// Hydrogens are ignored. Throws IoError, and FormatError with the path for a
// file that is damaged, is not a structure, has no residue that counts or has a
// coordinate that is not finite.
Structure read_structure(const std::filesystem::path& path);

// The same of the bytes of a file; errors name `path`.
Structure read_structure(std::string bytes, const std::filesystem::path& path);

// Whether the name ends as those of structures do, in any case: .pdb, .ent,
// .cif, .mmcif, and each with .gz.
bool is_structure_name(const std::filesystem::path& path);

// The file name without the endings of structures and of .pt: "pdb1abc".
std::string structure_name(const std::filesystem::path& path);

// Steps along the chain that are longer than `limit` from CA to CA.
int64_t count_chain_breaks(const std::vector<float>& backbone, double limit);

}  // namespace lockstep::proteins
