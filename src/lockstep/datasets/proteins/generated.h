// builtin:protein: chains made by code, for runs and tests without files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/datasets/proteins/structure.h"
#include "lockstep/models/protein/torsion.h"

namespace lockstep::proteins {

struct GeneratedChainConfig {
  int64_t min_residues = 30;
  int64_t max_residues = 80;
  // Which chains: those of other seeds are others.
  uint64_t seed = 0;
};

struct GeneratedAtom {
  std::string name = {};  // "CA"
  protein::Point3 place = {};
};

struct GeneratedResidue {
  std::string type = {};                  // "ALA"
  std::vector<GeneratedAtom> atoms = {};  // N, CA, C, O, then CB and chi1's.
};

// Helices, strands and turns of ideal bonds and angles, with noise on phi and
// psi. The kind of turn at a residue makes some residue types likely, and both
// make a rotamer of the side chain likely: a model can learn both from the
// backbone. The chain depends on the config and its number alone.
std::vector<GeneratedResidue> generated_chain(
    const GeneratedChainConfig& config, int64_t index);

// As if it had been read from a file.
Structure generated_structure(const GeneratedChainConfig& config,
                              int64_t index);

}  // namespace lockstep::proteins
