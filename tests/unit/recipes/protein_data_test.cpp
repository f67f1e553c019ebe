#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"
#include "lockstep/datasets/proteins/cache_file.h"
#include "lockstep/datasets/proteins/open_sets.h"
#include "lockstep/datasets/proteins/protein_set.h"
#include "lockstep/error.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"
#include "support/protein_files.h"
#include "support/temp_dir.h"

namespace lockstep::proteins {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using Ids = std::vector<int64_t>;
using Names = std::vector<std::string>;

const double kNone = std::numeric_limits<double>::quiet_NaN();

// Residues along a line, 3.8 A apart.
Structure line_of(const Names& types, const std::vector<double>& chi1) {
  Structure structure{.residue_types = types, .chi1 = chi1};
  for (size_t i = 0; i < types.size() * 12; ++i) {
    structure.backbone.push_back(static_cast<float>(i / 12) * 3.8F +
                                 static_cast<float>(i % 12) * 0.1F);
  }
  structure.residue_ids.resize(types.size(), "1");
  return structure;
}

Protein small_protein() {
  return make_protein(
      line_of({"GLY", "VAL", "ALA", "SER", "PHE"}, {kNone, 1, kNone, kNone, 2}),
      "pdb/small.pdb");
}

std::string write_pdb(const TempDir& folder, const std::string& name,
                      int64_t index) {
  return folder.write(name, testing::pdb_text(testing::chain_atoms(index)));
}

Names names_of(const std::shared_ptr<const ProteinSet>& set) {
  Names names;
  for (int64_t i = 0; set && i < set->size(); ++i) {
    names.push_back(set->name(i));
  }
  return names;
}

template <typename Failing>
std::string error_of(const Failing& failing) {
  try {
    failing();
  } catch (const Error& error) {
    return kind_name(error) + ": " + error.what();
  }
  return "";
}

void expect_equal(const Protein& a, const Protein& b) {
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.residue_types, b.residue_types);
  EXPECT_EQ(a.backbone, b.backbone);
  EXPECT_EQ(a.fragments, b.fragments);
  EXPECT_EQ(a.fragment_residues, b.fragment_residues);
  EXPECT_EQ(a.torsion_bins, b.torsion_bins);
  EXPECT_EQ(a.torsion_residues, b.torsion_residues);
  EXPECT_EQ(a.resolution, b.resolution);
}

TEST(Protein, ItsTorsionsBelongToTheFirstFragmentOfTheirResidue) {
  const Protein protein = small_protein();
  EXPECT_EQ(protein.fragments, (Ids{15, 4, 4, 4, 6, 5, 7}));
  EXPECT_EQ(protein.fragment_residues, (Ids{1, 1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(protein.torsion_residues, (Ids{1, 4}));
  const int64_t first = protein::torsion_bin(1);
  const int64_t second = protein::torsion_bin(2);
  EXPECT_EQ(protein.torsion_bins, (Ids{first, second}));
  EXPECT_EQ(torsion_targets(protein), (Ids{first, -1, -1, -1, -1, second, -1}));
}

TEST(ProteinFile, GivesBackWhatWasWritten) {
  const TempDir folder;
  const fs::path path = folder.path() / "x.pt";
  for (const Protein& protein :
       {small_protein(), make_protein(generated_structure({}, 1), "y.cif.gz"),
        make_protein(line_of({"GLY"}, {kNone}), "g.pdb")}) {
    write_protein_file(path, protein);
    expect_equal(read_protein_file(path), protein);
    const ProteinFacts facts = read_protein_facts(path);
    EXPECT_EQ(facts.num_residues, protein.num_residues());
    EXPECT_EQ(facts.num_fragments, std::ssize(protein.fragments));
    EXPECT_EQ(facts.num_torsions, std::ssize(protein.torsion_bins));
    EXPECT_TRUE(facts.has_aligned_torsions);
    EXPECT_EQ(facts.source, protein.source);
  }
}

// A file as the original writes it.
Tree original_tree(const Protein& protein) {
  Tree tree;
  tree["backbone_coords"] =
      torch::tensor(protein.backbone).view({protein.num_residues(), 4, 3});
  tree["fragment_token_ids"] = torch::tensor(protein.fragments);
  tree["torsion_bins"] = torch::tensor(protein.torsion_bins);
  tree["residue_types"] =
      Tree::list({protein.residue_types.begin(), protein.residue_types.end()});
  tree["sequence_length"] = torch::tensor(protein.num_residues());
  tree["pdb_path"] = protein.source;
  return tree;
}

TEST(ProteinFile, OfTheOriginalIsAlignedWhereItsSideChainsAreWhole) {
  const TempDir folder;
  const fs::path path = folder.path() / "x.pt";
  const Protein whole = make_protein(generated_structure({}, 2), "2.pdb");
  save_checkpoint(path, original_tree(whole));
  Protein expected = whole;
  expected.resolution.reset();
  expect_equal(read_protein_file(path), expected);
  EXPECT_TRUE(read_protein_facts(path).has_aligned_torsions);

  // Serine lacks its torsion here: nothing tells which residue has none.
  save_checkpoint(path, original_tree(small_protein()));
  const Protein part = read_protein_file(path);
  EXPECT_FALSE(part.torsion_residues);
  EXPECT_EQ(part.fragment_residues, small_protein().fragment_residues);
  EXPECT_EQ(torsion_targets(part), Ids(7, -1));
  EXPECT_FALSE(read_protein_facts(path).has_aligned_torsions);
}

TEST(ProteinFile, OthersAreRefusedByName) {
  const TempDir folder;
  const fs::path path = folder.path() / "x.pt";
  const Tree good = original_tree(small_protein());
  const auto refused = [&](const char* key, Tree value) {
    Tree tree = good;
    tree[key] = std::move(value);
    save_checkpoint(path, tree);
    const std::string text = error_of([&] { read_protein_file(path); });
    EXPECT_TRUE(text.starts_with("FormatError")) << key << text;
    EXPECT_NE(text.find(path.string()), std::string::npos) << text;
  };
  refused("backbone_coords", torch::zeros({5, 3, 3}));
  refused("backbone_coords", torch::zeros({4, 4, 3}));
  refused("backbone_coords", torch::full({5, 4, 3}, kNone));
  refused("backbone_coords", torch::zeros({5, 4, 3}, torch::kLong));
  refused("fragment_token_ids", torch::tensor(Ids{15, 4, 4, 4, 6, 5, 16}));
  refused("fragment_token_ids", torch::tensor(Ids{15, 4, 4, 4, 6, 5}));
  refused("fragment_token_ids", torch::tensor(3));
  refused("fragment_residue_idx", torch::tensor(Ids{1, 1, 1, 2, 3, 4, 5}));
  refused("fragment_residue_idx", torch::tensor(Ids{1}));
  refused("torsion_bins", torch::tensor(Ids{72, 1}));
  refused("torsion_bins", torch::tensor(Ids{-1, 1}));
  refused("torsion_residue_idx", torch::tensor(Ids{1}));
  refused("torsion_residue_idx", torch::tensor(Ids{1, 5}));
  refused("sequence_length", torch::tensor(6));
  refused("sequence_length", "5");
  refused("residue_types", Tree::list({Tree("ALA")}));
  refused("residue_types", Tree::list({Tree("GLY"), Tree("VAL"), Tree("ALA"),
                                       Tree("SER"), Tree("MSE")}));
  refused("pdb_path", 3);
  folder.write("x.pt", "nothing");
  EXPECT_THROW(read_protein_file(path), FormatError);
  EXPECT_THROW(read_protein_facts(path), FormatError);
  EXPECT_THROW(read_protein_file(folder.path() / "none.pt"), IoError);
}

TEST(ProteinSet, PadsABatchToItsLongest) {
  const TempDir folder;
  const Protein small = small_protein();
  const Protein tiny = make_protein(line_of({"ALA", "SER"}, {kNone, 3}), "t");
  write_protein_file(folder.path() / "small.pt", small);
  const ProteinFiles set({{.path = folder.path() / "small.pt", .length = 12},
                          {.path = "tiny.pdb",
                           .kept = std::make_shared<const Protein>(tiny),
                           .length = 4}});
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.lengths(), (Ids{12, 4}));
  EXPECT_EQ(set.name(1), "tiny");
  const Sample batch = set.collate({set.get(0, 0), set.get(1, 0)});
  ASSERT_EQ(batch.size(), 5U);
  EXPECT_EQ(batch[0].sizes(), (Ids{2, 5, 4, 3}));
  EXPECT_EQ(batch[0].scalar_type(), torch::kFloat);
  EXPECT_TRUE(batch[0][0].flatten().equal(torch::tensor(small.backbone)));
  EXPECT_TRUE(
      batch[0][1].slice(0, 0, 2).flatten().equal(torch::tensor(tiny.backbone)));
  EXPECT_EQ(batch[0][1].slice(0, 2).abs().max().item<float>(), 0);
  EXPECT_TRUE(batch[1].equal(torch::tensor(Ids{5, 2})));
  EXPECT_TRUE(batch[2].equal(torch::tensor(
      {{15, 4, 4, 4, 6, 5, 7}, {4, 6, 0, 0, 0, 0, 0}}, torch::kLong)));
  const int64_t a = protein::torsion_bin(1);
  const int64_t b = protein::torsion_bin(2);
  const int64_t c = protein::torsion_bin(3);
  EXPECT_TRUE(batch[3][0].equal(torch::tensor(Ids{a, -1, -1, -1, -1, b, -1})));
  EXPECT_TRUE(batch[3][1].equal(torch::tensor(Ids{-1, c, -1, -1, -1, -1, -1})));
  EXPECT_TRUE(batch[4][1].equal(torch::tensor(Ids{0, 1, -1, -1, -1, -1, -1})));
}

TEST(ProteinSets, BuiltinOnesDifferAndHaveLengths) {
  const ProteinSets sets = open_protein_sets({.pdb_path = "builtin:protein"});
  EXPECT_EQ(sets.train->size(), 200);
  EXPECT_EQ(sets.validation->size(), 30);
  EXPECT_NE(sets.train->protein(0).backbone,
            sets.validation->protein(0).backbone);
  const Sample sample = sets.train->get(3, 0);
  EXPECT_EQ(sets.train->lengths()[3], sample[0].size(0) + sample[2].size(0));
  EXPECT_TRUE(sets.train->get(3, 9)[0].equal(sample[0]));
  EXPECT_THROW(open_protein_sets({.pdb_path = "builtin:proteins"}),
               ConfigError);
}

TEST(ProteinSets, HoldTheSameNamesBackEverywhere) {
  const TempDir folder;
  for (int64_t i = 0; i < 20; ++i) {
    write_protein_file(folder.path() / fmt::format("p{}.pt", i),
                       make_protein(generated_structure({}, i), "p"));
  }
  const std::string path = folder.path().string();
  const ProteinDataConfig config{.pdb_path = path, .cache_dir = path};
  const ProteinSets sets = open_protein_sets(config);
  EXPECT_EQ(sets.train->size(), 18);
  EXPECT_EQ(sets.validation->size(), 2);
  EXPECT_FALSE(sets.test);
  EXPECT_TRUE(sets.notes.empty());
  EXPECT_EQ(names_of(open_protein_sets(config).validation),
            names_of(sets.validation));
  std::set<std::string> all;
  for (const auto& set : {sets.train, sets.validation}) {
    for (const std::string& name : names_of(set)) all.insert(name);
  }
  EXPECT_EQ(all.size(), 20U);
  ProteinDataConfig other = config;
  other.cache_dir.clear();  // A folder of .pt files needs no cache_dir.
  other.seed = 5;
  EXPECT_NE(names_of(open_protein_sets(other).validation),
            names_of(sets.validation));
  other.val_split = 0;
  EXPECT_FALSE(open_protein_sets(other).validation);
  other.val_split = 0.01;
  EXPECT_EQ(open_protein_sets(other).validation->size(), 1);
  other.val_split = 1;
  EXPECT_THROW(open_protein_sets(other), ConfigError);
}

TEST(ProteinSets, FollowListsAndNameWhatIsMissing) {
  const TempDir folder;
  for (const char* name : {"a", "b", "c", "d"}) {
    write_protein_file(folder.path() / (std::string(name) + ".pt"),
                       small_protein());
  }
  const ProteinDataConfig config{.pdb_path = folder.path().string()};
  folder.write("train.txt", "c.pt\n\n a.pdb\r\n");
  EXPECT_NE(error_of([&] { open_protein_sets(config); }).find("val.txt"),
            std::string::npos);
  folder.write("val.txt", "b\n");
  ProteinSets sets = open_protein_sets(config);
  EXPECT_EQ(names_of(sets.train), (Names{"c", "a"}));
  EXPECT_EQ(names_of(sets.validation), Names{"b"});
  EXPECT_FALSE(sets.test);
  folder.write("test.txt", "d.cif.gz\n");
  EXPECT_EQ(names_of(open_protein_sets(config).test), Names{"d"});
  folder.write("test.txt", "d\nlost\n");
  const std::string missing = error_of([&] { open_protein_sets(config); });
  EXPECT_NE(missing.find("lost"), std::string::npos) << missing;
  EXPECT_TRUE(missing.starts_with("ConfigError"));
  folder.write("test.txt", "a\n");
  EXPECT_NE(error_of([&] { open_protein_sets(config); }).find("more than once"),
            std::string::npos);
}

TEST(ProteinSets, LeaveOutWhatCannotBeTrainedOnAndSaySo) {
  const TempDir folder;
  write_protein_file(folder.path() / "good.pt", small_protein());
  write_protein_file(folder.path() / "more.pt", small_protein());
  write_protein_file(folder.path() / "bare.pt",
                     make_protein(line_of({"GLY"}, {kNone}), "g"));
  write_protein_file(folder.path() / "long.pt",
                     make_protein(generated_structure({}, 1), "l"));
  save_checkpoint(folder.path() / "unaligned.pt",
                  original_tree(small_protein()));
  folder.write("damaged.pt", "nothing");
  const ProteinSets sets = open_protein_sets(
      {.pdb_path = folder.path().string(), .val_split = 0, .max_residues = 20});
  // A damaged file stays, for --skip_bad_samples to decide.
  EXPECT_EQ(names_of(sets.train),
            (Names{"damaged", "good", "more", "unaligned"}));
  EXPECT_THROW(sets.train->get(0, 0), FormatError);
  ASSERT_EQ(sets.notes.size(), 3U);
  EXPECT_NE(sets.notes[0].find("bare"), std::string::npos);
  EXPECT_NE(sets.notes[1].find("long"), std::string::npos);
  EXPECT_NE(sets.notes[2].find("unaligned"), std::string::npos);
}

TEST(ProteinSets, ReadStructuresAndKeepThemInTheCache) {
  const TempDir folder;
  const TempDir cache;
  fs::create_directories(folder.path() / "deep");
  write_pdb(folder, "deep/b.ent.gz", 1);
  write_pdb(folder, "c.pdb", 2);
  folder.write("a.cif", testing::mmcif_text(testing::chain_atoms(0)));
  folder.write("bad.pdb", "hello\n");
  folder.write("notes.txt", "no structure");
  ProteinDataConfig config{
      .pdb_path = folder.path().string(), .val_split = 0, .num_threads = 3};
  const ProteinSets memory = open_protein_sets(config);
  EXPECT_EQ(names_of(memory.train), (Names{"a", "b", "c"}));
  ASSERT_EQ(memory.notes.size(), 1U);
  EXPECT_NE(memory.notes[0].find("bad.pdb"), std::string::npos);
  config.cache_dir = (cache.path() / "new").string();
  for (int round = 0; round < 2; ++round) {
    const ProteinSets cached = open_protein_sets(config);
    EXPECT_EQ(names_of(cached.train), names_of(memory.train));
    EXPECT_EQ(cached.train->lengths(), memory.train->lengths());
    EXPECT_EQ(cached.notes, memory.notes);
    for (int64_t i = 0; i < 3; ++i) {
      expect_equal(cached.train->protein(i), memory.train->protein(i));
    }
  }
  EXPECT_TRUE(fs::exists(cache.path() / "new/b.pt"));
  EXPECT_FALSE(fs::exists(cache.path() / "new/bad.pt"));
}

TEST(ProteinSets, ACacheThatDoesNotFitIsMadeAnew) {
  const TempDir folder;
  const TempDir cache;
  const fs::path file = cache.path() / "x.pt";
  const ProteinDataConfig config{.pdb_path = write_pdb(folder, "x.pdb", 0),
                                 .cache_dir = cache.path().string()};
  const Protein first = open_protein_sets(config).train->protein(0);
  const auto written = fs::last_write_time(file);
  EXPECT_EQ(names_of(open_protein_sets(config).train), Names{"x"});
  EXPECT_EQ(fs::last_write_time(file), written);
  // Damaged.
  cache.write("x.pt", "nothing");
  expect_equal(open_protein_sets(config).train->protein(0), first);
  // Made of another file of that name.
  Protein other = first;
  other.source = "elsewhere/x.cif";
  other.backbone[0] += 1;
  write_protein_file(file, other);
  expect_equal(open_protein_sets(config).train->protein(0), first);
  // Older than the structure.
  write_pdb(folder, "x.pdb", 1);
  fs::last_write_time(
      file, fs::last_write_time(config.pdb_path) - std::chrono::seconds(10));
  EXPECT_NE(open_protein_sets(config).train->protein(0).backbone,
            first.backbone);
}

TEST(ProteinSets, SeveralAtOnceShareOneCache) {
  const TempDir folder;
  const TempDir cache;
  for (int64_t i = 0; i < 12; ++i) {
    write_pdb(folder, fmt::format("p{}.pdb", i), i);
  }
  const ProteinDataConfig config{.pdb_path = folder.path().string(),
                                 .cache_dir = cache.path().string(),
                                 .num_threads = 2};
  std::vector<ProteinSets> sets(4);
  {
    std::vector<std::jthread> threads;
    for (ProteinSets& set : sets) {
      threads.emplace_back([&] { set = open_protein_sets(config); });
    }
  }
  for (const ProteinSets& set : sets) {
    EXPECT_EQ(names_of(set.train), names_of(sets[0].train));
    EXPECT_EQ(names_of(set.validation), names_of(sets[0].validation));
    for (int64_t i = 0; i < set.train->size(); ++i) set.train->get(i, 0);
  }
  // No leftovers of writing.
  for (const auto& entry : fs::directory_iterator(cache.path())) {
    EXPECT_EQ(entry.path().extension(), ".pt") << entry.path();
  }
}

TEST(ProteinSets, SayWhatToDoAboutWrongPaths) {
  const TempDir folder;
  const std::string path = folder.path().string();
  for (const ProteinDataConfig& config :
       {ProteinDataConfig{.pdb_path = path + "/none"},
        ProteinDataConfig{.pdb_path = ""}, ProteinDataConfig{.pdb_path = path},
        ProteinDataConfig{.pdb_path = path, .cache_dir = path}}) {
    const std::string text = error_of([&] { open_protein_sets(config); });
    EXPECT_TRUE(text.starts_with("ConfigError")) << text;
    EXPECT_NE(text.find("lockstep prepare protein"), std::string::npos) << text;
  }
  const std::string required = error_of([] { open_protein_sets({}); });
  EXPECT_NE(required.find("--pdb_path is missing"), std::string::npos)
      << required;
  write_pdb(folder, "x.pdb", 0);
  // Structures are there, but the folder is named as the cache.
  EXPECT_NE(error_of([&] {
              open_protein_sets({.pdb_path = path, .cache_dir = path});
            }).find(".pt files"),
            std::string::npos);
  write_pdb(folder, "x.pdb.gz", 0);
  EXPECT_NE(error_of([&] {
              open_protein_sets({.pdb_path = path});
            }).find("the same name"),
            std::string::npos);
}

TEST(ProteinSets, NothingLeftIsAnErrorWithTheReasons) {
  const TempDir folder;
  folder.write("bad.pdb", "hello");
  const std::string text = error_of(
      [&] { open_protein_sets({.pdb_path = folder.path().string()}); });
  EXPECT_NE(text.find("nothing to train on"), std::string::npos) << text;
  EXPECT_NE(text.find("bad.pdb"), std::string::npos) << text;
}

TEST(ProteinStructures, AreOpenedOneByOneOrAsAFolder) {
  const TempDir folder;
  const std::string file = write_pdb(folder, "x.pdb", 3);
  write_pdb(folder, "y.ent", 4);
  folder.write("z.pdb", "hello");
  const auto one = open_structures(file);
  ASSERT_EQ(one->size(), 1);
  EXPECT_EQ(one->name(0), "x");
  EXPECT_EQ(one->path(0), file);
  const auto all = open_structures(folder.path());
  ASSERT_EQ(all->size(), 3);
  EXPECT_EQ(all->protein(0).backbone, one->protein(0).backbone);
  EXPECT_EQ(all->get(1, 0).size(), 5U);
  EXPECT_THROW(all->get(2, 0), FormatError);
  EXPECT_THROW(open_structures(folder.path() / "none"), ConfigError);
  const TempDir empty;
  EXPECT_THROW(open_structures(empty.path()), ConfigError);
}

}  // namespace
}  // namespace lockstep::proteins
