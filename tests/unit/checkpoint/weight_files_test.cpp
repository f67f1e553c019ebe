#include "lockstep/checkpoint/weight_files.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"
#include "lockstep/nn/weights.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::refusal;
using testing::TempDir;
using torch::Tensor;

struct UninitialisedNet : torch::nn::Module {
  UninitialisedNet() {
    const nn::UninitialisedWeights weights_come_later;
    linear = register_module("linear", nn::Linear(300, 200));
    norm = register_module("norm", nn::LayerNorm(200));
    count = register_buffer("count", torch::zeros({}, at::kLong));
  }
  nn::Linear linear{nullptr};
  nn::LayerNorm norm{nullptr};
  Tensor count;
};

Tree weights() {
  torch::manual_seed(3);
  Tree tree;
  tree["linear.weight"] = torch::randn({200, 300}).to(at::kBFloat16);
  tree["linear.bias"] = torch::randn({200}).to(at::kBFloat16);
  tree["norm.weight"] = torch::randn({200}).to(at::kBFloat16);
  tree["norm.bias"] = torch::randn({200}).to(at::kBFloat16);
  tree["count"] = torch::tensor(7, at::kLong);
  return tree;
}

Tree part_of(const Tree& tree, const std::vector<std::string>& names) {
  Tree part = Tree::dict();
  for (const std::string& name : names) part[name] = tree.at(name).as_tensor();
  return part;
}

constexpr const char* kIndex = R"({"metadata": {"total_size": 1},
  "weight_map": {"linear.weight": "one.safetensors",
                 "linear.bias": "two.safetensors",
                 "norm.weight": "two.safetensors",
                 "norm.bias": "two.safetensors",
                 "count": "one.safetensors"}})";

// The same weights in every layout: name of the layout -> what to open.
std::vector<fs::path> write_all(const TempDir& folder) {
  const Tree tree = weights();
  const fs::path root = folder.path();
  for (const char* name : {"single", "sharded", "torch", "nested"}) {
    fs::create_directory(root / name);
  }
  save_safetensors(root / "single" / "model.safetensors", tree);
  save_safetensors(root / "sharded" / "one.safetensors",
                   part_of(tree, {"linear.weight", "count"}));
  save_safetensors(root / "sharded" / "two.safetensors",
                   part_of(tree, {"linear.bias", "norm.weight", "norm.bias"}));
  folder.write("sharded/model.safetensors.index.json", kIndex);
  save_checkpoint(root / "torch" / "pytorch_model.bin", tree);
  Tree nested;
  nested["epoch"] = 3;
  nested["model"] = tree;
  save_checkpoint(root / "nested" / "model.pt", nested);
  return {root / "single",
          root / "single" / "model.safetensors",
          root / "sharded",
          root / "sharded" / "model.safetensors.index.json",
          root / "torch",
          root / "nested",
          root / "nested" / "model.pt"};
}

TEST(WeightFiles, GiveTheSameTensorsInEveryLayout) {
  const TempDir folder;
  const Tree expected = weights();
  std::set<std::string> hashes;
  for (const fs::path& path : write_all(folder)) {
    SCOPED_TRACE(path);
    const checkpoint::WeightFiles files(path);
    EXPECT_EQ(files.names(),
              (std::vector<std::string>{"count", "linear.bias", "linear.weight",
                                        "norm.bias", "norm.weight"}));
    for (const std::string& name : files.names()) {
      EXPECT_TRUE(files.get(name).equal(expected.at(name).as_tensor())) << name;
    }
    EXPECT_EQ(files.facts("linear.weight").shape,
              (std::vector<int64_t>{200, 300}));
    EXPECT_EQ(files.facts("count").dtype, at::kLong);
    EXPECT_FALSE(files.has("epoch"));
    EXPECT_THROW(files.get("epoch"), ConfigError);
    hashes.insert(files.content_hash());
  }
  EXPECT_EQ(hashes.size(), 1U);
  EXPECT_EQ(hashes.begin()->size(), 64U);
}

TEST(WeightFiles, GiveTensorsThatOutliveThem) {
  const TempDir folder;
  Tensor tensor;
  {
    const checkpoint::WeightFiles files(write_all(folder).front());
    tensor = files.get("linear.weight");
  }
  EXPECT_TRUE(tensor.equal(weights().at("linear.weight").as_tensor()));
}

TEST(WeightFiles, ReadTensorsAtOddPlacesAndWithStrides) {
  const TempDir folder;
  // 3 bytes before the numbers: no float may be read where it lies.
  Tree odd;
  odd["a"] = torch::tensor({1, 2, 3}, at::kByte);
  save_safetensors(folder.path() / "even.safetensors", odd);
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes += header + "\1\2\3";
  const std::array<float, 2> numbers = {0.5F, -2};
  bytes.append(reinterpret_cast<const char*>(numbers.data()), 8);
  const checkpoint::WeightFiles unaligned(
      folder.write("odd.safetensors", bytes));
  EXPECT_TRUE(unaligned.get("b").equal(torch::tensor({0.5F, -2.0F})));
  EXPECT_TRUE(unaligned.load("b", at::kCPU).equal(unaligned.get("b")));

  const Tensor whole = torch::randn({40, 30});
  Tree views;
  views["turned"] = whole.t();
  views["part"] = whole.narrow(0, 5, 7);
  save_checkpoint(folder.path() / "views.pt", views);
  const checkpoint::WeightFiles files(folder.path() / "views.pt");
  for (const char* name : {"turned", "part"}) {
    const Tensor expected = views.at(name).as_tensor();
    EXPECT_TRUE(files.get(name).equal(expected)) << name;
    const Tensor loaded = files.load(name, at::kDouble);
    EXPECT_TRUE(loaded.is_contiguous()) << name;
    EXPECT_TRUE(loaded.equal(expected.to(at::kDouble))) << name;
  }
  Tree packed;
  for (const char* name : {"turned", "part"}) {
    packed[name] = views.at(name).as_tensor().contiguous();
  }
  save_safetensors(folder.path() / "packed.safetensors", packed);
  EXPECT_EQ(checkpoint::WeightFiles(folder.path() / "packed.safetensors")
                .content_hash(),
            files.content_hash());
}

TEST(WeightFiles, LoadTensorsLargerThanAPiece) {
  const TempDir folder;
  Tree tree;
  tree["large"] = torch::arange(9'000'001).to(at::kFloat);  // 34 MiB
  save_safetensors(folder.path() / "a.safetensors", tree);
  const checkpoint::WeightFiles files(folder.path() / "a.safetensors");
  const Tensor expected = tree.at("large").as_tensor();
  EXPECT_TRUE(files.load("large", at::kCPU).equal(expected));
  EXPECT_TRUE(files.load("large", at::kDouble).equal(expected.to(at::kDouble)));
  EXPECT_TRUE(files.get("large").equal(expected));  // Read again.
}

TEST(WeightFiles, HashChangesWithNamesTypesShapesAndNumbers) {
  const TempDir folder;
  const auto hash = [&](const Tree& tree) {
    save_safetensors(folder.path() / "a.safetensors", tree);
    return checkpoint::WeightFiles(folder.path() / "a.safetensors")
        .content_hash();
  };
  Tree tree;
  tree["a"] = torch::zeros({2, 3});
  std::set<std::string> hashes = {hash(tree)};
  EXPECT_EQ(hash(tree), *hashes.begin());
  Tree named;
  named["b"] = torch::zeros({2, 3});
  Tree shaped;
  shaped["a"] = torch::zeros({3, 2});
  Tree typed;
  typed["a"] = torch::zeros({2, 3}, at::kInt);
  Tree other;
  other["a"] = torch::zeros({2, 3});
  other.at("a").as_tensor()[1][2] = 1;
  for (const Tree& changed : {named, shaped, typed, other}) {
    hashes.insert(hash(changed));
  }
  EXPECT_EQ(hashes.size(), 5U);
}

TEST(WeightFiles, HashIsRememberedUntilTheFileChanges) {
  const TempDir folder;
  const fs::path file = folder.path() / "a.safetensors";
  const fs::path notes = folder.path() / "notes";
  Tree tree;
  tree["a"] = torch::zeros({3});
  save_safetensors(file, tree);
  const std::string first = checkpoint::WeightFiles(file).content_hash(notes);
  const fs::path note = fs::directory_iterator(notes)->path();
  EXPECT_EQ(base::read_file(note), first);
  // A note is believed: the file is not read.
  const std::string made_up(64, 'e');
  folder.write("notes/" + note.filename().string(), made_up);
  EXPECT_EQ(checkpoint::WeightFiles(file).content_hash(notes), made_up);
  folder.write("notes/" + note.filename().string(), "cut o");
  EXPECT_EQ(checkpoint::WeightFiles(file).content_hash(notes), first);
  folder.write("notes/" + note.filename().string(), made_up);
  tree["a"] = torch::ones({3});
  save_safetensors(file, tree);
  fs::last_write_time(file,
                      fs::last_write_time(file) + std::chrono::seconds(1));
  const std::string second = checkpoint::WeightFiles(file).content_hash(notes);
  EXPECT_NE(second, made_up);
  EXPECT_NE(second, first);
  // A folder that cannot be made costs the note alone.
  EXPECT_EQ(checkpoint::WeightFiles(file).content_hash(file / "notes"), second);
}

TEST(WeightFiles, SayWhatIsNotThere) {
  const TempDir folder;
  write_all(folder);
  EXPECT_THROW(checkpoint::WeightFiles(folder.path() / "absent.safetensors"),
               IoError);
  fs::create_directory(folder.path() / "empty");
  const std::string empty = refusal<ConfigError>(
      [&] { checkpoint::WeightFiles(folder.path() / "empty"); });
  EXPECT_TRUE(contains(empty, "model.safetensors.index.json")) << empty;

  const fs::path shards = folder.path() / "sharded";
  fs::rename(shards / "two.safetensors", shards / "gone");
  const std::string shard =
      refusal<IoError>([&] { checkpoint::WeightFiles{shards}; });
  EXPECT_TRUE(contains(shard, "model.safetensors.index.json")) << shard;
  EXPECT_TRUE(contains(shard, "two.safetensors")) << shard;

  fs::copy(shards / "one.safetensors", shards / "two.safetensors");
  const std::string tensor =
      refusal<FormatError>([&] { checkpoint::WeightFiles{shards}; });
  EXPECT_TRUE(contains(tensor, "model.safetensors.index.json")) << tensor;
  EXPECT_TRUE(contains(tensor, "two.safetensors")) << tensor;
  EXPECT_TRUE(contains(tensor, "'linear.bias'")) << tensor;
}

TEST(WeightFiles, RefuseDamagedFiles) {
  const TempDir folder;
  for (const char* index :
       {"", "{", "[]", "{}", R"({"weight_map": 3})",
        R"({"weight_map": {"a": 3}})", R"({"weight_map": {"a": "../b"}})",
        R"({"weight_map": {"a": ".."}})", R"({"weight_map": {"a": ""}})",
        R"({"weight_map": {}})"}) {
    const auto path = folder.write("model.safetensors.index.json", index);
    const std::string text =
        refusal<FormatError>([&] { checkpoint::WeightFiles{path}; });
    EXPECT_TRUE(contains(text, "index.json")) << index << ": " << text;
  }
  // A byte of a tensor: the checksum of torch files tells.
  write_all(folder);
  std::string bytes =
      base::read_file(folder.path() / "torch" / "pytorch_model.bin");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const auto path = folder.write("damaged.bin", bytes);
  const std::string text =
      refusal<FormatError>([&] { checkpoint::WeightFiles{path}; });
  EXPECT_TRUE(contains(text, "damaged.bin")) << text;
}

TEST(FillModule, PutsTensorsInPlaceInTheAskedType) {
  const TempDir folder;
  const Tree expected = weights();
  for (const fs::path& path : write_all(folder)) {
    SCOPED_TRACE(path);
    for (const auto dtype :
         {std::optional<at::ScalarType>(), std::optional(at::kFloat),
          std::optional(at::kHalf)}) {
      UninitialisedNet net;
      const auto report = checkpoint::fill_module(
          net, checkpoint::WeightFiles(path), {.dtype = dtype});
      EXPECT_EQ(report.num_loaded, 5);
      const Tensor weight = net.named_parameters()["linear.weight"];
      const auto wanted = dtype.value_or(at::kBFloat16);
      EXPECT_EQ(weight.scalar_type(), wanted);
      EXPECT_TRUE(
          weight.equal(expected.at("linear.weight").as_tensor().to(wanted)));
      EXPECT_EQ(net.count.scalar_type(), at::kLong);
      EXPECT_EQ(net.count.item<int64_t>(), 7);
      // The layer itself sees it, and it can be written to.
      EXPECT_EQ(
          net.linear->forward(torch::zeros({1, 300}, wanted)).sizes().vec(),
          (std::vector<int64_t>{1, 200}));
      const torch::NoGradGuard no_grad;
      weight.zero_();
    }
  }
}

TEST(FillModule, MapsNamesAndIgnoresWhatNobodyMisses) {
  const TempDir folder;
  const Tree plain = weights();
  Tree published;
  for (const auto& entry : *plain.get_if<Tree::Dict>()) {
    published["model." + *entry.key.get_if<std::string>()] = entry.value;
  }
  published["head.weight"] = torch::zeros({2});
  save_safetensors(folder.path() / "a.safetensors", published);
  const checkpoint::WeightFiles files(folder.path() / "a.safetensors");
  UninitialisedNet net;
  checkpoint::FillConfig config{.name_in_file = [](const std::string& name) {
    return std::optional("model." + name);
  }};
  const std::string unknown = refusal<ConfigError>(
      [&] { checkpoint::fill_module(net, files, config); });
  EXPECT_TRUE(contains(unknown, "head.weight")) << unknown;
  EXPECT_TRUE(contains(unknown, "a.safetensors")) << unknown;
  config.ignored_prefixes = {"head."};
  EXPECT_EQ(checkpoint::fill_module(net, files, config).num_loaded, 5);
  // A parameter without a place in the file keeps what it has.
  config.ignored_prefixes = {"head.", "model.count"};
  config.name_in_file =
      [](const std::string& name) -> std::optional<std::string> {
    if (name == "count") return {};
    return "model." + name;
  };
  net.count.fill_(11);
  EXPECT_EQ(checkpoint::fill_module(net, files, config).num_loaded, 4);
  EXPECT_EQ(net.count.item<int64_t>(), 11);
}

TEST(FillModule, NamesWhatDoesNotFitAndChangesNothing) {
  const TempDir folder;
  Tree tree = weights();
  tree["linear.weight"] = torch::zeros({2, 3});
  tree["other"] = torch::zeros({1});
  Tree::Dict without = *tree.get_if<Tree::Dict>();
  std::erase_if(without, [](const Tree::Entry& entry) {
    return *entry.key.get_if<std::string>() == "norm.bias";
  });
  save_safetensors(folder.path() / "a.safetensors", Tree(without));
  UninitialisedNet net;
  net.count.fill_(11);
  const std::string text = refusal<ConfigError>([&] {
    checkpoint::fill_module(
        net, checkpoint::WeightFiles(folder.path() / "a.safetensors"));
  });
  EXPECT_TRUE(contains(text, "linear.weight: file [2, 3], module [200, 300]"))
      << text;
  EXPECT_TRUE(contains(text, "missing in the checkpoint: norm.bias")) << text;
  EXPECT_TRUE(contains(text, "unknown to the module: other")) << text;
  EXPECT_EQ(net.count.item<int64_t>(), 11);
}

}  // namespace
}  // namespace lockstep
