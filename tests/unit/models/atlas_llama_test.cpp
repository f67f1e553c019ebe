#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <nlohmann/json.hpp>

#include "lockstep/error.h"
#include "lockstep/models/llama/llama.h"
#include "lockstep/nn/weights.h"
#include "support/temp_dir.h"
#include "support/weights.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using testing::Shapes;
using testing::shapes_of;
using testing::TempDir;
using torch::Tensor;

// The published list follows this rule.
Shapes shapes_of_llama3_8b() {
  Shapes shapes = {{"embed_tokens.weight", {128256, 4096}},
                   {"norm.weight", {4096}}};
  for (int layer = 0; layer < 32; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".";
    shapes[name + "self_attn.q_proj.weight"] = {4096, 4096};
    shapes[name + "self_attn.k_proj.weight"] = {1024, 4096};
    shapes[name + "self_attn.v_proj.weight"] = {1024, 4096};
    shapes[name + "self_attn.o_proj.weight"] = {4096, 4096};
    shapes[name + "mlp.gate_proj.weight"] = {14336, 4096};
    shapes[name + "mlp.up_proj.weight"] = {14336, 4096};
    shapes[name + "mlp.down_proj.weight"] = {4096, 14336};
    shapes[name + "input_layernorm.weight"] = {4096};
    shapes[name + "post_attention_layernorm.weight"] = {4096};
  }
  return shapes;
}

Json small_config() {
  return {{"model_type", "llama"},    {"vocab_size", 64},
          {"hidden_size", 32},        {"intermediate_size", 48},
          {"num_hidden_layers", 3},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},   {"rope_scaling", nullptr},
          {"hidden_act", "silu"},     {"attention_bias", false},
          {"torch_dtype", "bfloat16"}};
}

llama::LlamaConfig read(const Json& json) {
  const TempDir folder;
  return llama::read_llama_config(folder.write("config.json", json.dump()));
}

std::shared_ptr<llama::Llama> tiny() {
  auto model =
      std::make_shared<llama::Llama>(llama::llama_preset("llama_tiny"));
  nn::materialize(*model, at::kDouble);
  nn::fill_randomly(*model, 5);
  return model;
}

TEST(AtlasLlama, NamesAndShapesAreThePublishedOnes) {
  const llama::Llama model(llama::llama_preset("llama3_8b"));
  const auto shapes = shapes_of(model);
  EXPECT_EQ(shapes, shapes_of_llama3_8b());
  EXPECT_EQ(shapes.size(), 290U);
  int64_t numbers = 0;
  for (const Tensor& parameter : model.parameters()) {
    numbers += parameter.numel();
  }
  EXPECT_EQ(numbers, 7'504'924'672);
  EXPECT_TRUE(model.buffers().empty());
}

TEST(AtlasLlama, ATokenSeesNothingBehindItAndNoPadding) {
  const auto model = tiny();
  const Tensor ids = torch::randint(258, {2, 9});
  const Tensor whole = model->forward(ids);
  // What comes later changes nothing before it.
  Tensor changed = ids.clone();
  changed.slice(1, 5).fill_(3);
  EXPECT_TRUE(torch::allclose(model->forward(changed).slice(1, 0, 5),
                              whole.slice(1, 0, 5), 1e-10, 1e-12));
  EXPECT_FALSE(torch::allclose(model->forward(changed).slice(1, 5),
                               whole.slice(1, 5), 1e-3, 1e-3));
  // Padding on the right: as if it were not there.
  Tensor mask = torch::ones({2, 9}, at::kBool);
  EXPECT_TRUE(torch::allclose(model->forward(ids, mask), whole, 1e-10, 1e-12));
  mask[1].slice(0, 6).fill_(false);
  const Tensor padded = model->forward(ids, mask);
  EXPECT_TRUE(torch::allclose(padded[0], whole[0], 1e-10, 1e-12));
  EXPECT_TRUE(torch::allclose(padded[1].slice(0, 0, 6), whole[1].slice(0, 0, 6),
                              1e-10, 1e-12));
  // A hole is not seen by what follows.
  mask.fill_(true);
  mask[0][2] = false;
  Tensor other = ids.clone();
  other[0][2] = 7;
  EXPECT_TRUE(torch::allclose(model->forward(other, mask)[0].slice(0, 3),
                              model->forward(ids, mask)[0].slice(0, 3), 1e-10,
                              1e-12));
}

TEST(AtlasLlama, ATextWithoutTokensStaysFinite) {
  const auto model = tiny();
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    model->to(type);
    Tensor mask = torch::ones({2, 5}, at::kBool);
    mask[1].fill_(false);
    const Tensor hidden = model->forward(torch::randint(258, {2, 5}), mask);
    EXPECT_EQ(hidden.scalar_type(), type);
    EXPECT_TRUE(hidden.isfinite().all().item<bool>()) << type;
  }
}

TEST(AtlasLlama, TheTableOfTurnsGrowsAndFollowsTheType) {
  const auto model = tiny();
  const Tensor ids = torch::randint(258, {1, 300});
  const Tensor first = model->forward(ids.slice(1, 0, 7));
  const Tensor whole = model->forward(ids);
  EXPECT_TRUE(torch::allclose(whole.slice(1, 0, 7), first, 1e-10, 1e-12));
  model->to(at::kBFloat16);
  const Tensor rounded = model->forward(ids);
  EXPECT_EQ(rounded.scalar_type(), at::kBFloat16);
  EXPECT_LT((rounded - whole).norm().item<double>(),
            0.1 * whole.norm().item<double>());
}

TEST(AtlasLlama, GradientsFlowAlsoAfterAPassWithoutThem) {
  const auto model = tiny();
  const Tensor ids = torch::randint(258, {1, 5});
  {
    const c10::InferenceMode without;
    model->forward(ids);
  }
  model->forward(ids).square().sum().backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().norm().item<double>(), 0) << item.key();
  }
}

TEST(LlamaConfig, IsReadAsPublishedAndAsNewerProgramsWriteIt) {
  Json json = small_config();
  llama::LlamaConfig config = read(json);
  EXPECT_EQ(config.vocab_size, 64);
  EXPECT_EQ(config.mlp_size, 48);
  EXPECT_EQ(config.num_layers, 3);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_size, 8);
  EXPECT_EQ(config.rope_theta, 500000);
  EXPECT_FALSE(config.rope_scaling);

  json.erase("num_key_value_heads");
  json["head_dim"] = 16;
  json["rope_scaling"] = {{"rope_type", "llama3"},
                          {"factor", 8.0},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 8192}};
  config = read(json);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.head_size, 16);
  ASSERT_TRUE(config.rope_scaling);
  EXPECT_EQ(config.rope_scaling->old_context, 8192);
  const std::string text = llama::describe(config);

  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = 500000.0;
  json.erase("rope_scaling");
  json.erase("rope_theta");
  EXPECT_EQ(llama::describe(read(json)), text);
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 100.0}};
  EXPECT_EQ(read(json).rope_theta, 100);
  EXPECT_FALSE(read(json).rope_scaling);
  EXPECT_NE(llama::describe(read(json)), text);
}

TEST(LlamaConfig, RefusesOtherModelsAndDamage) {
  const std::vector<std::pair<const char*, Json>> changes = {
      {"model_type", "qwen2"},
      {"model_type", nullptr},
      {"hidden_act", "gelu"},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"vocab_size", 0},
      {"vocab_size", -3},
      {"hidden_size", "32"},
      {"hidden_size", nullptr},
      {"num_hidden_layers", 1.5},
      {"num_hidden_layers", 1'000'000},
      {"vocab_size", int64_t{1} << 40},
      {"head_dim", 1 << 23},
      {"num_key_value_heads", 3},
      {"head_dim", 7},
      {"num_attention_heads", 64},
      {"rms_norm_eps", "small"},
      {"rope_theta", -1},
      {"rope_scaling", 3},
      {"rope_scaling", {{"type", "linear"}, {"factor", 2}}},
      {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 2}}}};
  for (const auto& [key, value] : changes) {
    Json json = small_config();
    json[key] = value;
    try {
      read(json);
      ADD_FAILURE() << key << " " << value;
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find("config.json"),
                std::string::npos);
    }
  }
  const TempDir folder;
  EXPECT_THROW(llama::read_llama_config(folder.write("a", "{")), FormatError);
  EXPECT_THROW(llama::read_llama_config(folder.write("a", "[]")), FormatError);
  EXPECT_THROW(llama::read_llama_config(folder.path() / "absent"), IoError);
  EXPECT_THROW(llama::llama_preset("llama_huge"), ConfigError);
}

}  // namespace
}  // namespace lockstep
