// mmCIF files that lack some of the columns of others.
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/strings.h"
#include "lockstep/datasets/proteins/structure.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "support/protein_files.h"

namespace lockstep {
namespace {

using testing::chain_atoms;
using Atoms = std::vector<testing::AtomLine>;

std::string mmcif_refusal(const std::string& bytes) {
  return testing::refusal<FormatError>(
      [&] { proteins::read_structure(bytes, "folder/1abc.cif"); });
}

// The mmCIF text without these columns of its atoms.
std::string without_columns(const Atoms& atoms,
                            const std::set<std::string>& names) {
  std::string result;
  std::vector<bool> is_kept;
  for (const std::string& line :
       base::split(testing::mmcif_text(atoms), '\n')) {
    if (line.starts_with("_atom_site.")) {
      is_kept.push_back(!names.contains(line.substr(11)));
      if (is_kept.back()) result += line + "\n";
    } else if (line.starts_with("ATOM")) {
      const auto words = base::split(line, ' ');
      for (size_t i = 0; i < words.size(); ++i) {
        if (is_kept.at(i)) result += words[i] + " ";
      }
      result += "\n";
    } else {
      result += line + "\n";
    }
  }
  return result;
}

// PyMOL writes neither; other programs leave out what they have no value for.
TEST(Mmcif, ColumnsThatFollowFromOthersMayBeMissing) {
  const Atoms atoms = chain_atoms();
  const proteins::Structure expected =
      proteins::read_structure(testing::mmcif_text(atoms), "x");
  for (const std::set<std::string>& missing :
       {std::set<std::string>{"auth_seq_id"},
        {"auth_seq_id", "label_asym_id"},
        {"label_seq_id"},
        {"auth_asym_id", "pdbx_PDB_model_num", "pdbx_PDB_ins_code"},
        {"id", "group_PDB", "type_symbol"},
        {"label_alt_id", "occupancy", "B_iso_or_equiv", "auth_seq_id"}}) {
    const proteins::Structure read =
        proteins::read_structure(without_columns(atoms, missing), "x");
    EXPECT_EQ(read.residue_types, expected.residue_types);
    EXPECT_EQ(read.residue_ids, expected.residue_ids);
    EXPECT_EQ(read.backbone, expected.backbone);
    EXPECT_EQ(read.chain, "A");
  }
}

TEST(Mmcif, AnUnknownNumberOfTheAuthorsIsThatOfTheSequence) {
  const Atoms atoms = chain_atoms();
  const std::string text = testing::mmcif_text(atoms);
  std::string unknown;
  for (const std::string& line : base::split(text, '\n')) {
    auto words = base::split(line, ' ');
    if (line.starts_with("ATOM")) words.at(14) = "?";
    unknown += base::join(words, " ") + "\n";
  }
  EXPECT_EQ(proteins::read_structure(unknown, "x").residue_ids,
            proteins::read_structure(text, "x").residue_ids);
}

TEST(Mmcif, AMissingColumnIsNamed) {
  const Atoms atoms = chain_atoms();
  const auto error = [&](const std::set<std::string>& missing) {
    return mmcif_refusal(without_columns(atoms, missing));
  };
  EXPECT_NE(error({"Cartn_y"}).find("no column Cartn_y"), std::string::npos);
  EXPECT_NE(error({"auth_seq_id", "label_seq_id"}).find("label_seq_id"),
            std::string::npos);
  EXPECT_NE(error({"label_comp_id"}).find("label_comp_id"), std::string::npos);
  EXPECT_NE(mmcif_refusal("data_x\n_entry.id x\n").find("no table _atom_site"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
