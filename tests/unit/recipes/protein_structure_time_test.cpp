#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/datasets/proteins/structure.h"
#include "support/cpu_time.h"
#include "support/protein_files.h"

namespace lockstep {
namespace {

using testing::AtomLine;

// A residue of chain A, then atoms of `num_chains` chains, of which the last
// two take turns.
std::string mixed_pdb(int num_atoms, int num_chains) {
  std::vector<AtomLine> atoms;
  for (const char* name : {"N", "CA", "C", "O"})
    atoms.push_back({.name = name});
  for (int i = 0; i < num_atoms; ++i) {
    const int chain = i < num_chains ? i : num_chains - 1 - i % 2;
    std::string name(1, static_cast<char>('A' + chain % 26));
    if (chain >= 26) name += static_cast<char>('A' + chain / 26);
    atoms.push_back({.chain = name, .number = 2 + i % 9000});
  }
  return testing::pdb_text(atoms);
}

TEST(Structure, ChainsThatTakeTurnsTakeTimeInProportion) {
  for (const int num_chains : {2, 600}) {
    const auto seconds = [&](int num_atoms) {
      const std::string text = mixed_pdb(num_atoms, num_chains);
      return testing::cpu_seconds(
          [&] { proteins::read_structure(text, "a.pdb"); });
    };
    EXPECT_LT(testing::growth_of_time(seconds, 160'000), testing::kLinearGrowth)
        << num_chains << " chains";
  }
}

TEST(Structure, PartsOfAChainAreOneChain) {
  std::vector<AtomLine> atoms;
  for (const int number : {1, 2, 3}) {
    for (const char* chain : {"A", "B"}) {
      for (const char* name : {"N", "CA", "C", "O"}) {
        atoms.push_back({.name = name, .chain = chain, .number = number});
      }
    }
  }
  for (const std::string& text :
       {testing::pdb_text(atoms), testing::mmcif_text(atoms)}) {
    const proteins::Structure structure = proteins::read_structure(text, "a");
    EXPECT_EQ(structure.chain, "A");
    EXPECT_EQ(structure.residue_ids, (std::vector<std::string>{"1", "2", "3"}));
  }
}

}  // namespace
}  // namespace lockstep
