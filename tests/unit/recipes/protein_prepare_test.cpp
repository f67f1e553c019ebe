#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/datasets/proteins/generated.h"
#include "lockstep/datasets/proteins/open_sets.h"
#include "lockstep/datasets/proteins/prepare.h"
#include "lockstep/error.h"
#include "support/protein_files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using Words = std::vector<std::string>;

std::string chain_text(int64_t index, int64_t length) {
  return testing::pdb_text(testing::atom_lines(proteins::generated_chain(
      {.min_residues = length, .max_residues = length}, index)));
}

Words lines_of(const fs::path& path) {
  Words lines = base::split(base::read_file(path), '\n');
  std::erase(lines, "");
  return lines;
}

struct Folders {
  TempDir input;
  TempDir output;

  std::string prepare(const Words& more = {}) const {
    Words words = {"--pdb_dir",     input.path().string(),
                   "--output_dir",  output.path().string(),
                   "--num_workers", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return proteins::prepare_protein(words);
  }
  Words list(const std::string& name) const {
    return lines_of(output.path() / name);
  }
};

TEST(PrepareProtein, WritesFilesAndListsThatTrainingReads) {
  const Folders folders;
  for (int64_t i = 0; i < 20; ++i) {
    folders.input.write("p" + std::to_string(i) + ".pdb", chain_text(i, 45));
  }
  const std::string text = folders.prepare();
  EXPECT_NE(text.find("20 used (20 written, 0 were up to date)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("structures/s"), std::string::npos) << text;
  EXPECT_NE(text.find("20 state no resolution"), std::string::npos) << text;
  std::set<std::string> all;
  for (const char* list : {"train.txt", "val.txt", "test.txt"}) {
    for (const std::string& name : folders.list(list)) all.insert(name);
  }
  EXPECT_EQ(all.size(), 20U);
  EXPECT_EQ(folders.list("train.txt").size(), 16U);
  EXPECT_EQ(folders.list("val.txt").size(), 2U);
  EXPECT_EQ(folders.list("test.txt").size(), 2U);
  EXPECT_TRUE(folders.list("rejected.txt").empty());
  const std::string output = folders.output.path().string();
  const proteins::ProteinSets sets =
      proteins::open_protein_sets({.pdb_path = output, .cache_dir = output});
  EXPECT_EQ(sets.train->size(), 16);
  EXPECT_EQ(sets.validation->size(), 2);
  EXPECT_EQ(sets.test->size(), 2);
  // The same lists again, others by another seed.
  const Words train = folders.list("train.txt");
  folders.prepare();
  EXPECT_EQ(folders.list("train.txt"), train);
  folders.prepare({"--seed", "3"});
  EXPECT_NE(folders.list("train.txt"), train);
}

TEST(PrepareProtein, GoesOnWhereItWasStopped) {
  const Folders folders;
  for (int64_t i = 0; i < 4; ++i) {
    folders.input.write("p" + std::to_string(i) + ".pdb", chain_text(i, 45));
  }
  folders.prepare();
  fs::remove(folders.output.path() / "p1.pt");
  folders.output.write("p2.pt", "damaged");
  folders.output.write("p3.pt.partial.abcdef", "of a killed process");
  const std::string text = folders.prepare();
  EXPECT_NE(text.find("4 used (2 written, 2 were up to date)"),
            std::string::npos)
      << text;
  EXPECT_EQ(proteins::read_protein_file(folders.output.path() / "p2.pt")
                .num_residues(),
            45);
  EXPECT_FALSE(fs::exists(folders.output.path() / "p3.pt.partial.abcdef"));
}

TEST(PrepareProtein, ListsBadAndPoorStructuresWithTheirReasons) {
  const Folders folders;
  folders.input.write("good.pdb", chain_text(0, 45));
  folders.input.write("good.pdb.gz", chain_text(1, 45));
  folders.input.write("short.pdb", chain_text(0, 39));
  folders.input.write("text.pdb", "hello");
  folders.input.write(
      "blurred.pdb",
      "REMARK   2 RESOLUTION.    2.60 ANGSTROMS.\n" + chain_text(2, 45));
  folders.input.write(
      "sharp.pdb",
      "REMARK   2 RESOLUTION.    2.50 ANGSTROMS.\n" + chain_text(2, 45));
  auto atoms = testing::atom_lines(
      proteins::generated_chain({.min_residues = 60, .max_residues = 60}, 4));
  std::erase_if(atoms, [](const testing::AtomLine& atom) {
    return atom.number == 10 || atom.number == 20 || atom.number == 30;
  });
  folders.input.write("broken.pdb", testing::pdb_text(atoms));
  const std::string text = folders.prepare();
  const Words rejected = folders.list("rejected.txt");
  ASSERT_EQ(rejected.size(), 5U) << text;
  EXPECT_TRUE(rejected[0].starts_with("blurred.pdb\tresolution 2.60 A"));
  EXPECT_TRUE(rejected[1].starts_with("broken.pdb\t3 breaks"));
  EXPECT_TRUE(rejected[2].starts_with("good.pdb.gz\thas the same name"));
  EXPECT_TRUE(rejected[3].starts_with("short.pdb\t39 residues"));
  EXPECT_TRUE(rejected[4].starts_with("text.pdb\t"));
  for (const char* name : {"blurred.pdb", "text.pdb", "5 rejected"}) {
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
  // Without the filter only what cannot be read is left out.
  folders.prepare({"--no_filter"});
  EXPECT_EQ(folders.list("rejected.txt").size(), 2U);
  // The filter also judges what is up to date.
  folders.prepare();
  EXPECT_EQ(folders.list("rejected.txt"), rejected);
  folders.prepare(
      {"--max_resolution", "3", "--min_residues", "30", "--max_breaks", "3"});
  EXPECT_EQ(folders.list("rejected.txt").size(), 2U);
}

TEST(PrepareProtein, TakesMmcifFilesOnlyWhenAsked) {
  const Folders folders;
  const auto chain =
      proteins::generated_chain({.min_residues = 45, .max_residues = 45}, 0);
  folders.input.write("a.pdb", testing::pdb_text(testing::atom_lines(chain)));
  folders.input.write(
      "b.cif.gz",
      testing::gzipped(testing::mmcif_text(testing::atom_lines(chain))));
  folders.prepare({"--use_mmcif"});
  EXPECT_EQ(folders.list("train.txt"), Words{"b"});
  folders.prepare();
  EXPECT_EQ(folders.list("train.txt").size() + folders.list("val.txt").size(),
            2U);
}

TEST(PrepareProtein, RefusesWrongFlagsAndEmptyFolders) {
  const Folders folders;
  EXPECT_THROW(folders.prepare(), ConfigError);
  EXPECT_THROW(proteins::prepare_protein({"--pdb_dir", "x"}), ConfigError);
  EXPECT_THROW(folders.prepare({"--train_ratio", "0.9"}), ConfigError);
  EXPECT_THROW(folders.prepare({"--nonsense", "1"}), ConfigError);
  EXPECT_THROW(folders.prepare({"more"}), ConfigError);
  folders.input.write("x.pdb", "hello");
  EXPECT_THROW(folders.prepare(), ConfigError);
  EXPECT_EQ(folders.list("rejected.txt").size(), 1U);
  EXPECT_NE(proteins::prepare_protein({"--help"}).find("--max_resolution"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
