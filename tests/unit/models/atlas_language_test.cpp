#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/models/atlas/language.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int64_t>;
using Json = nlohmann::json;
using testing::TempDir;
using torch::Tensor;

constexpr const char* kTokenizer = R"({
  "model": {"type": "BPE", "ignore_merges": true,
    "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3}, "merges": ["a b"]},
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "post_processor": {"type": "Sequence", "processors": [
    {"type": "ByteLevel"},
    {"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}}],
     "pair": [],
     "special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>",
       "ids": [4], "tokens": ["<|begin_of_text|>"]}}}]},
  "decoder": {"type": "ByteLevel"},
  "added_tokens": [
    {"id": 4, "content": "<|begin_of_text|>", "special": true},
    {"id": 5, "content": "<|end_of_text|>", "special": true}]})";

Json model_config() {
  return {{"model_type", "llama"},    {"vocab_size", 6},
          {"hidden_size", 8},         {"intermediate_size", 12},
          {"num_hidden_layers", 1},   {"num_attention_heads", 2},
          {"num_key_value_heads", 1}, {"rms_norm_eps", 1e-5}};
}

llama::LlamaConfig sizes() {
  return {.vocab_size = 6,
          .hidden_size = 8,
          .mlp_size = 12,
          .num_layers = 1,
          .num_heads = 2,
          .num_kv_heads = 1,
          .head_size = 4,
          .rope_theta = 10'000};
}

// A published folder; the weights are bfloat16.
void write_model(const fs::path& folder, const std::string& prefix) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << model_config();
  std::ofstream(folder / "tokenizer.json") << kTokenizer;
  torch::manual_seed(1);
  Tree weights;
  const llama::Llama model(sizes());
  for (const auto& item : model.named_parameters()) {
    weights[prefix + item.key()] =
        torch::randn(item.value().sizes()).to(at::kBFloat16);
  }
  if (!prefix.empty()) {
    weights["lm_head.weight"] = torch::zeros({6, 8}, at::kBFloat16);
    weights[prefix + "layers.0.self_attn.rotary_emb.inv_freq"] =
        torch::zeros({2});
  }
  save_safetensors(folder / "model.safetensors", weights);
}

TEST(LanguageEncoder, TheTinyOneNeedsNoFilesAndIsTheSameEverywhere) {
  atlas::LanguageEncoder encoder({});
  EXPECT_EQ(encoder.hidden_size(), 32);
  EXPECT_EQ(encoder.tokenize("ab"), (Ids{'a', 'b'}));
  EXPECT_EQ(encoder.tokenize(std::string(300, 'x')).size(), 128U);
  const std::vector<Ids> sentences = {encoder.tokenize("pick the red block"),
                                      encoder.tokenize("push")};
  const atlas::TokenBatch batch = encoder.batch(sentences);
  EXPECT_EQ(batch.ids.sizes().vec(), (Ids{2, 18}));
  EXPECT_EQ(batch.ids[1][4].item<int64_t>(), encoder.padding());
  EXPECT_EQ(batch.mask.sum(1).to(at::kLong).equal(torch::tensor({18, 4})),
            true);
  const Tensor features = encoder.encode(batch.ids, batch.mask);
  EXPECT_EQ(features.sizes().vec(), (Ids{2, 18, 32}));
  EXPECT_FALSE(features.requires_grad());
  EXPECT_FALSE(encoder.model().is_training());
  EXPECT_TRUE(features.isfinite().all().item<bool>());
  atlas::LanguageEncoder other({});
  EXPECT_TRUE(other.encode(batch.ids, batch.mask).equal(features));
  EXPECT_EQ(other.hash(), encoder.hash());
}

TEST(LanguageEncoder, OpensPublishedFoldersAndHubNames) {
  const TempDir folder;
  const fs::path model =
      folder.path() / "hub" / "models--owner--name" / "snapshots" / "abc";
  write_model(model, "model.");
  write_model(folder.path() / "plain", "");
  atlas::LanguageEncoder by_name({.model = "owner/name"},
                                 {{"HF_HOME", folder.path().string()}});
  atlas::LanguageEncoder by_path({.model = (folder.path() / "plain").string()});
  EXPECT_EQ(by_name.tokenize("ab<|end_of_text|>c"), (Ids{4, 3, 5, 2}));
  EXPECT_EQ(by_name.padding(), 5);
  EXPECT_EQ(by_name.tokenize(""), (Ids{4}));
  const std::vector<Ids> sentences = {by_name.tokenize("abc"), {4}};
  const atlas::TokenBatch batch = by_name.batch(sentences);
  const Tensor features = by_name.encode(batch.ids, batch.mask);
  EXPECT_EQ(features.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(features.equal(by_path.encode(batch.ids, batch.mask)));
  atlas::LanguageEncoder exact(
      {.model = (folder.path() / "plain").string(), .precision = at::kFloat});
  const Tensor whole = exact.encode(batch.ids, batch.mask);
  EXPECT_EQ(whole.scalar_type(), at::kFloat);
  EXPECT_LT((whole - features).norm().item<float>(),
            0.05 * whole.norm().item<float>());
}

TEST(LanguageEncoder, CutsLongSentencesBehindTheBeginToken) {
  const TempDir folder;
  write_model(folder.path() / "m", "model.");
  const atlas::LanguageEncoder encoder(
      {.model = (folder.path() / "m").string(), .max_tokens = 4});
  EXPECT_EQ(encoder.tokenize("cccccc"), (Ids{4, 2, 2, 2}));
  EXPECT_THROW(atlas::LanguageEncoder(
                   {.model = (folder.path() / "m").string(), .max_tokens = 1}),
               ConfigError);
}

TEST(LanguageEncoder, HashChangesWithAllThatItsFeaturesDependOn) {
  const TempDir folder;
  const fs::path model = folder.path() / "m";
  write_model(model, "model.");
  const atlas::LanguageConfig config{.model = model.string()};
  const auto hash = [&](const atlas::LanguageConfig& changed) {
    return atlas::LanguageEncoder(changed).hash();
  };
  std::set<std::string> hashes = {hash(config)};
  EXPECT_EQ(hash(config), *hashes.begin());
  atlas::LanguageConfig remembered = config;
  remembered.notes = folder.path() / "notes";
  EXPECT_EQ(hash(remembered), *hashes.begin());
  EXPECT_EQ(hash(remembered), *hashes.begin());
  for (const auto precision : {at::kFloat, at::kHalf, at::kBFloat16}) {
    atlas::LanguageConfig changed = config;
    changed.precision = precision;
    hashes.insert(hash(changed));
  }
  atlas::LanguageConfig shorter = config;
  shorter.max_tokens = 64;
  hashes.insert(hash(shorter));
  Json other = model_config();
  other["rope_theta"] = 20000.0;
  std::ofstream(model / "config.json") << other;
  hashes.insert(hash(config));
  std::ofstream(model / "tokenizer_config.json")
      << R"({"eos_token": "<|end_of_text|>"})";
  hashes.insert(hash(config));
  fs::remove(model / "model.safetensors");
  Tree weights = load_checkpoint([&] {
    write_model(folder.path() / "n", "model.");
    return folder.path() / "n" / "model.safetensors";
  }());
  weights.at("model.norm.weight").as_tensor()[0] += 1;
  save_safetensors(model / "model.safetensors", weights);
  hashes.insert(hash(config));
  hashes.insert(hash({}));
  EXPECT_EQ(hashes.size(), 9U);
}

TEST(LanguageEncoder, SaysWhatAFolderLacks) {
  const TempDir folder;
  const fs::path model = folder.path() / "m";
  const auto refusal = [&](const std::string& name) -> std::string {
    try {
      atlas::LanguageEncoder({.model = name},
                             {{"HF_HOME", folder.path().string()}});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const char* lost :
       {"config.json", "tokenizer.json", "model.safetensors"}) {
    write_model(model, "model.");
    fs::remove(model / lost);
    const std::string text = refusal(model.string());
    EXPECT_NE(text.find(lost), std::string::npos) << text;
  }
  EXPECT_NE(refusal("owner/absent").find("hf download owner/absent"),
            std::string::npos);
  write_model(model, "model.");
  Json few = model_config();
  few["vocab_size"] = 5;
  std::ofstream(model / "config.json") << few;
  EXPECT_NE(refusal(model.string()).find("6 tokens"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
