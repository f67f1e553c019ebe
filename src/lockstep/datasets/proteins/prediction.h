// What `lockstep sample protein` writes about a structure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/datasets/proteins/cache_file.h"
#include "lockstep/models/protein/inference.h"
#include "lockstep/output_file.h"

namespace lockstep::proteins {

struct KnownProtein {
  Protein protein = {};
  std::vector<std::string> residue_ids = {};  // "12", "12A"; else from 1 on.
  // Degrees; NaN where there is none. The middle of the bin for .pt files.
  std::vector<double> chi1 = {};
};

// Reads a structure or a .pt file. Throws FormatError or IoError with the path.
KnownProtein read_known_protein(const std::filesystem::path& path);

// {name}.tsv, one row per fragment, and {name}.json, the summary. The guess has
// no dimension of batches and lies on the CPU; num_bins are those of its
// torsions.
std::vector<OutputFile> prediction_files(const std::string& name,
                                         const KnownProtein& known,
                                         const protein::FragmentGuess& guess,
                                         int64_t num_bins);

}  // namespace lockstep::proteins
