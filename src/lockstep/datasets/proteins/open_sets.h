// Finds proteins on the disk and splits them into sets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/datasets/proteins/protein_set.h"

namespace lockstep::proteins {

struct ProteinDataConfig {
  // "builtin:protein"; a folder of .pt files; a folder of structures, at any
  // depth; or one such file.
  std::string pdb_path = {};
  // Where structures are kept as .pt files once they were read; empty: in
  // memory. The same folder as pdb_path: its .pt files are the data.
  std::string cache_dir = {};
  double val_split = 0.1;  // The part that is held back, without lists.
  uint64_t seed = 0;       // For the split; must be equal on all processes.
  int64_t max_residues = 2048;  // Longer ones are left out.
  int64_t num_threads = 0;      // To read structures; 0: one per core.
};

struct ProteinSets {
  std::shared_ptr<const ProteinSet> train = {};
  std::shared_ptr<const ProteinSet> validation = {};  // Null: none.
  std::shared_ptr<const ProteinSet> test = {};        // Null: none.
  // Sentences about what was left out, for the start of a run.
  std::vector<std::string> notes = {};
};

// Structures are read and checked here, those in cache_dir excepted; several
// processes may do so at once and then divide the work. Lists train.txt,
// val.txt and, if wanted, test.txt in pdb_path or cache_dir define the sets;
// without them val_split of the names is held back. Proteins without a side
// chain to predict, those too long and structures that cannot be read are left
// out. The sets depend on the files' names and contents, the lists and the
// config alone. A damaged .pt file stays in: its get() throws.
//
// Throws ConfigError when there is nothing to train on or the lists are wrong.
ProteinSets open_protein_sets(const ProteinDataConfig& config);

// A structure or .pt file, or all of a folder, each one sample that is read
// when it is asked for. Throws ConfigError that names --pdb.
std::shared_ptr<const ProteinFiles> open_structures(
    const std::filesystem::path& path);

// Those of a folder, at any depth, in the order of their paths. Throws IoError.
std::vector<std::filesystem::path> list_structures(
    const std::filesystem::path& folder);

}  // namespace lockstep::proteins
