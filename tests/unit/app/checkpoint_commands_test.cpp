#include "lockstep/app/checkpoint_commands.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/formats/zip_reader.h"
#include "lockstep/formats/zip_writer.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

std::vector<std::string> names_in(const fs::path& path) {
  const Tree tree = load_checkpoint(path);
  std::vector<std::string> names;
  for (const auto& entry : TreeView(tree).as_dict()) {
    names.push_back(*entry.key.get_if<std::string>());
  }
  return names;
}

void expect_line(const std::string& text, const std::string& line) {
  EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos)
      << "no line '" << line << "' in\n"
      << text;
}

// A torch file of the dict `tree` with an object of `module`.`name` besides,
// which Lockstep itself cannot write.
fs::path save_with_object(const fs::path& path, const Tree& tree,
                          const std::string& key, const std::string& type) {
  const fs::path plain = path.string() + ".plain";
  save_checkpoint(plain, tree);
  const formats::ZipReader reader(formats::open_source(plain));
  base::AtomicFile file(path);
  formats::ZipWriter writer(file);
  for (const formats::ZipEntry& entry : reader.entries()) {
    const auto storage = reader.read(entry);
    std::string bytes(reinterpret_cast<const char*>(storage->bytes().data()),
                      storage->bytes().size());
    if (entry.name.ends_with("data.pkl")) {
      // Before the end: the key, the class, (), a new object, set the item.
      bytes.pop_back();
      bytes += std::string("X") + static_cast<char>(key.size()) +
               std::string(3, '\0') + key + "c" + type + "\n)\x81s.";
    }
    writer.add(entry.name, std::as_bytes(std::span(bytes)));
  }
  writer.finish();
  file.commit();
  return path;
}

TEST(Export, PrefixesOfWrappersAreTakenOff) {
  const TempDir folder;
  for (const std::string prefix :
       {"", "module.", "_orig_mod.", "module._orig_mod."}) {
    Tree tree;
    tree["model_state_dict"][prefix + "a.weight"] = torch::zeros({2});
    tree["model_state_dict"][prefix + "b"] = torch::zeros({1});
    const fs::path from = folder.path() / (prefix + "from.pt");
    save_checkpoint(from, tree);
    for (const char* ending : {"pt", "safetensors"}) {
      const fs::path to = folder.path() / (prefix + "to." + ending);
      app::export_checkpoint({from, to});
      EXPECT_EQ(names_in(to), (std::vector<std::string>{"a.weight", "b"}))
          << prefix;
    }
  }
}

TEST(Export, APrefixOfSomeNamesStays) {
  const TempDir folder;
  Tree tree;
  tree["module.a"] = torch::zeros({2});
  tree["b"] = torch::zeros({1});
  save_checkpoint(folder.path() / "from.pt", tree);
  app::export_checkpoint({folder.path() / "from.pt", folder.path() / "to.pt"});
  EXPECT_EQ(names_in(folder.path() / "to.pt"),
            (std::vector<std::string>{"module.a", "b"}));
}

// As protein saves them, with and without what Lockstep adds.
TEST(Export, PartsOfAModelAreJoinedByItsNames) {
  const TempDir folder;
  Tree tree;
  tree["epoch"] = 3;
  tree["encoder_state_dict"]["module.a.weight"] = torch::zeros({2});
  tree["encoder_state_dict"]["module.b"] = torch::zeros({1});
  tree["decoder_state_dict"]["a.weight"] = torch::ones({3});
  tree["optimizer_state_dict"]["state"] = torch::zeros({1});
  const fs::path from = folder.path() / "from.pt";
  save_checkpoint(from, tree);
  const fs::path to = folder.path() / "to.safetensors";
  app::export_checkpoint({from, to});
  const auto names = names_in(to);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()),
            (std::set<std::string>{"decoder.a.weight", "encoder.a.weight",
                                   "encoder.b"}));
  const fs::path part = folder.path() / "part.pt";
  app::export_checkpoint({from, part, "--key", "decoder_state_dict"});
  EXPECT_EQ(names_in(part), std::vector<std::string>{"a.weight"});
}

// As in a checkpoint of Lightning, whose names begin with attributes.
TEST(Export, TakesThePartOfAStateDictThatAKeyBegins) {
  const TempDir folder;
  Tree tree;
  tree["state_dict"]["model.0.weight"] = torch::zeros({2});
  tree["state_dict"]["model.head.bias"] = torch::zeros({2});
  tree["state_dict"]["models.weight"] = torch::zeros({2});
  const fs::path from = folder.path() / "last.ckpt";
  save_checkpoint(from, tree);
  const fs::path to = folder.path() / "to.pt";
  app::export_checkpoint({from, to, "--key", "state_dict.model"});
  EXPECT_EQ(names_in(to), (std::vector<std::string>{"0.weight", "head.bias"}));
  EXPECT_THROW(app::export_checkpoint({from, folder.path() / "other.pt",
                                       "--key", "state_dict.mod"}),
               ConfigError);
}

TEST(Export, SaysWhatWasLeftOut) {
  const TempDir folder;
  Tree tree;
  tree["a"] = torch::zeros({2});
  tree["epoch"] = 3;
  tree["note"] = "text";
  const fs::path from =
      save_with_object(folder.path() / "from.pt", tree, "last.weight",
                       "torch._utils\n_rebuild_sparse_tensor");
  const fs::path to = folder.path() / "to.pt";
  const std::string said = app::export_checkpoint({from, to});
  expect_line(said, from.string() + " -> " + to.string() + ": 1 tensors");
  expect_line(said,
              "left out: epoch (an integer), note (a string), last.weight "
              "(an object of torch._utils._rebuild_sparse_tensor, not read)");
  EXPECT_EQ(names_in(to), std::vector<std::string>{"a"});
}

TEST(Export, NamesAtMostTenOfWhatWasLeftOut) {
  const TempDir folder;
  Tree tree;
  tree["a"] = torch::zeros({2});
  const fs::path from = folder.path() / "from.pt";
  save_checkpoint(from, tree);
  EXPECT_EQ(app::export_checkpoint({from, folder.path() / "whole.pt"})
                .find("left out"),
            std::string::npos);
  for (int i = 0; i < 13; ++i) tree["n" + std::to_string(i)] = i;
  save_checkpoint(from, tree);
  const std::string said =
      app::export_checkpoint({from, folder.path() / "to.pt"});
  EXPECT_NE(said.find("n9 (an integer) and 3 more\n"), std::string::npos)
      << said;
  EXPECT_EQ(said.find("n10"), std::string::npos) << said;
}

TEST(Inspect, TypesAreNamedAsInPython) {
  const TempDir folder;
  Tree tree;
  tree["a"] = torch::zeros({2, 3});
  tree["b"] = torch::zeros({}, at::kLong);
  tree["c"] = torch::zeros({1}, at::kBFloat16);
  tree["d"] = torch::zeros({1}, at::kBool);
  const fs::path path = folder.path() / "a.pt";
  save_checkpoint(path, tree);
  const std::string text = app::inspect_checkpoint({path});
  for (const char* line :
       {"a  float32 [2, 3]", "b  int64 []", "c  bfloat16 [1]", "d  bool [1]"}) {
    expect_line(text, line);
  }
}

TEST(Inspect, PrintsNoControlCharactersOfAFile) {
  const TempDir folder;
  Tree tree;
  tree["\x1b[2Jname\n"] = torch::zeros({1});
  tree["text"] = "\x1b]0;title\x07";
  tree["lines"] = "one\n\x1b[31mtwo\xe2\x80\xae";
  const fs::path path = folder.path() / "a.pt";
  save_checkpoint(path, tree);
  const std::string text = app::inspect_checkpoint({path});
  expect_line(text, "\\x1b[2Jname\\n  float32 [1]");
  expect_line(text, "text  \"\\x1b]0;title\\x07\"");
  expect_line(text, "\\x1b[31mtwo\\u202e");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Inspect, ListsOfNumbersAreOneLine) {
  const TempDir folder;
  Tree tree;
  for (int i = 0; i < 750; ++i) tree["losses"].push_back(1.5 / (1 + i));
  tree["betas"] = Tree::tuple({0.9, 0.999});
  tree["params"] = Tree::list({0, 1});
  tree["mixed"] = Tree::list({1, "two"});
  tree["none"] = Tree::list();
  tree["lr"] = 0.003;
  const fs::path path = folder.path() / "a.pt";
  save_checkpoint(path, tree);
  const std::string text = app::inspect_checkpoint({path});
  for (const char* line :
       {"losses  [750 numbers: 1.5, 0.75, ..., 0.002]", "betas  [0.9, 0.999]",
        "params  [0, 1]", "mixed.0  1", "mixed.1  \"two\"", "none  []",
        "lr  0.003"}) {
    expect_line(text, line);
  }
}

TEST(Inspect, TakesSeveralFiles) {
  const TempDir folder;
  Tree tree;
  const std::string one = folder.path() / "one.pt";
  const std::string two = folder.path() / "two.pt";
  tree["first"] = 1;
  save_checkpoint(one, tree);
  tree["second"] = 2;
  save_checkpoint(two, tree);
  const std::string text = app::inspect_checkpoint({one, two});
  EXPECT_EQ(text.find(one + ": "), 0U) << text;
  EXPECT_NE(text.find("first  1\n\n" + two + ": "), std::string::npos) << text;
  expect_line(text, "second  2");
  EXPECT_THROW(app::inspect_checkpoint({}), ConfigError);
}

TEST(CheckpointCommands, AFolderOrAMissingFileIsNamed) {
  const TempDir folder;
  const std::string there = folder.path();
  const std::string missing = folder.path() / "none.pt";
  const std::string to = folder.path() / "to.pt";
  const auto refused = [](const auto& action) {
    return testing::refusal<ConfigError>(action);
  };
  EXPECT_EQ(
      refused([&] { app::inspect_checkpoint({there}); }),
      "lockstep inspect " + there + ": this is a folder; name a file in it");
  EXPECT_EQ(refused([&] { app::inspect_checkpoint({missing}); }),
            "lockstep inspect " + missing + ": there is no such file");
  EXPECT_EQ(refused([&] { app::export_checkpoint({missing, to}); }),
            "lockstep export " + missing + ": there is no such file");
}

TEST(CheckpointCommands, HelpIsTheUsage) {
  EXPECT_EQ(
      app::inspect_checkpoint({"--help"}).find("usage: lockstep inspect FILE"),
      0U);
  EXPECT_EQ(
      app::export_checkpoint({"-h"}).find("usage: lockstep export FROM TO"),
      0U);
}

}  // namespace
}  // namespace lockstep
