// A protein as the model sees it, and the .pt files that hold one each, in the
// original's layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/proteins/structure.h"

namespace lockstep::proteins {

struct Protein {
  std::string source = {};                      // The file of the structure.
  std::vector<std::string> residue_types = {};  // "ALA"; L of them.
  std::vector<float> backbone = {};     // [L, 4, 3]: N, CA, C, O in Angstrom.
  std::vector<int64_t> fragments = {};  // M ids.
  std::vector<int64_t> fragment_residues = {};  // M: the residue of each.
  std::vector<int64_t> torsion_bins = {};       // K bins of chi1.
  // K: the residue of each. No value: files of the original do not hold it, and
  // with incomplete side chains it cannot be derived.
  std::optional<std::vector<int64_t>> torsion_residues = {};
  // Angstrom; 0: not known. No value: not in the file.
  std::optional<double> resolution = {};

  int64_t num_residues() const {
    return static_cast<int64_t>(residue_types.size());
  }
};

Protein make_protein(const Structure& structure,
                     const std::filesystem::path& source);

// For each fragment the bin of its residue's chi1 where it is the residue's
// first fragment, else -1.
std::vector<int64_t> torsion_targets(const Protein& protein);

// torch.load(weights_only=True) and the original read it. Atomic. Throws
// IoError.
void write_protein_file(const std::filesystem::path& path,
                        const Protein& protein);

// Reads a file of Lockstep or of the original. Throws IoError, and FormatError
// with the path for a file that is damaged or holds something else.
Protein read_protein_file(const std::filesystem::path& path);

// What a file holds, without reading its tensors.
struct ProteinFacts {
  std::string source = {};
  int64_t num_residues = 0;
  int64_t num_fragments = 0;
  int64_t num_torsions = 0;
  bool has_aligned_torsions = true;
};

// Throws as read_protein_file(), but does not see damage inside of tensors.
ProteinFacts read_protein_facts(const std::filesystem::path& path);

// Whether the file is not older than the structure. Its source must be
// compared, too: two structures of one name may lie in one folder.
bool is_up_to_date(const std::filesystem::path& file,
                   const std::filesystem::path& structure);

// Whether it was made of a file of that name, wherever that was then.
bool is_made_of(const std::string& source,
                const std::filesystem::path& structure);

}  // namespace lockstep::proteins
