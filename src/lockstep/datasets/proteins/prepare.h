// `lockstep prepare protein`: structures become .pt files and lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/datasets/proteins/cache_file.h"
#include "lockstep/options.h"

namespace lockstep::proteins {

// Which structures are good enough to learn from.
struct QualityFilter {
  double max_resolution = 2.5;  // Angstrom. Those that state none pass.
  int64_t min_residues = 40;
  int64_t max_residues = 2048;
  double max_ca_distance = 4.5;  // Angstrom; more is a break of the chain.
  int64_t max_breaks = 2;
};

// Why it is not; no value: it passes. The protein must state its resolution.
std::optional<std::string> reason_against(const Protein& protein,
                                          const QualityFilter& filter);

struct ProteinPrepareConfig {
  std::string pdb_dir = {};
  std::string output_dir = {};
  int64_t num_workers = 0;  // 0: one per processor.
  double train_ratio = 0.8;
  double val_ratio = 0.1;
  double test_ratio = 0.1;
  int64_t seed = 42;
  bool use_mmcif = false;
  bool no_filter = false;
  QualityFilter filter = {};
};

// The flags of prepare_protein(). The config must outlive the options.
void describe_prepare_flags(Options& options, ProteinPrepareConfig& config);

// Reads the structures of --pdb_dir on several threads and writes {name}.pt,
// train.txt, val.txt, test.txt and rejected.txt (name, tab, reason) to
// --output_dir. Files that are up to date are not written again, so that it can
// go on where it was killed. A structure that cannot be read or is not good
// enough is only listed. Returns a summary, or the help for --help. Throws
// ConfigError for wrong flags and when no structure is left, IoError when files
// cannot be written.
std::string prepare_protein(const std::vector<std::string>& arguments,
                            const base::ShowProgress& progress = {});

}  // namespace lockstep::proteins
