// The LLaMA of the recipe atlas gives the hidden states of Hugging Face's
// LlamaModel, from the files that transformers writes; the other side is
// python/llama_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "interop/parity.h"
#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/models/llama/llama.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using torch::Tensor;

enum class Head { kNo, kYes };

struct Case {
  std::string name;
  Tree config = Tree::dict();  // What differs from the reference's own.
  std::string files = "safetensors";
  std::string config_style = "published";
  Head head = Head::kYes;
};

Tree sizes(std::initializer_list<std::pair<const char*, int64_t>> values) {
  Tree tree = Tree::dict();
  for (const auto& [key, value] : values) tree[key] = value;
  return tree;
}

// As in LLaMA 3.1, with a context so short that all three kinds of pairs occur.
Tree scaled() {
  Tree tree = sizes({{"head_dim", 32}});
  tree["rope_theta"] = 500000.0;
  tree["rope_scaling"]["rope_type"] = "llama3";
  tree["rope_scaling"]["factor"] = 8.0;
  tree["rope_scaling"]["low_freq_factor"] = 1.0;
  tree["rope_scaling"]["high_freq_factor"] = 4.0;
  tree["rope_scaling"]["original_max_position_embeddings"] = 64;
  return tree;
}

Tree theta() {
  Tree tree = Tree::dict();
  tree["rope_theta"] = 500000.0;
  tree["rms_norm_eps"] = 1e-3;
  return tree;
}

std::vector<Case> all_cases() {
  return {
      {.name = "half_kv", .files = "sharded_safetensors"},
      {.name = "one_kv", .config = sizes({{"num_key_value_heads", 1}})},
      {.name = "all_kv",
       .config = sizes({{"num_key_value_heads", 4}}),
       .files = "bin",
       .head = Head::kNo},
      {.name = "wide_heads",
       .config = sizes({{"head_dim", 24}}),
       .files = "sharded_bin"},
      {.name = "theta", .config = theta(), .config_style = "new"},
      {.name = "scaled", .config = scaled()},
      {.name = "scaled_new", .config = scaled(), .config_style = "new"},
  };
}

Tensor padding_mask(int64_t batch, int64_t length) {
  const Tensor lengths = torch::tensor({length, length - 7, int64_t{1}});
  return torch::arange(length).unsqueeze(0) <
         lengths.narrow(0, 0, batch).unsqueeze(1);
}

std::shared_ptr<llama::Llama> load(const fs::path& folder,
                                   const llama::LlamaConfig& config,
                                   Head head) {
  auto model = std::make_shared<llama::Llama>(config);
  checkpoint::FillConfig fill{.ignored_prefixes = {"lm_head."}};
  if (head == Head::kYes) {
    fill.name_in_file = [](const std::string& name) {
      return std::optional("model." + name);
    };
  }
  const checkpoint::WeightFiles files(folder);
  const auto report = checkpoint::fill_module(*model, files, fill);
  EXPECT_EQ(report.num_loaded, std::ssize(model->parameters()));
  model->eval();
  return model;
}

TEST(LlamaParity, HiddenStatesEqualThoseOfTransformers) {
  torch::manual_seed(11);
  const torch::NoGradGuard no_grad;
  const testing::TempDir root;
  const Tensor ids = torch::randint(64, {3, 140});
  const Tensor mask = padding_mask(3, 140);
  Tree cases;
  for (const Case& made : all_cases()) {
    fs::create_directory(root.path() / made.name);
    Tree& tree = cases[made.name];
    tree["config"] = made.config;
    tree["folder"] = (root.path() / made.name).string();
    tree["files"] = made.files;
    tree["config_style"] = made.config_style;
    tree["has_head"] = made.head == Head::kYes ? 1 : 0;
    tree["ids"] = ids;
    tree["mask"] = mask;
  }
  const Tree results = testing::run_reference("llama_reference.py", cases);
  for (const Case& made : all_cases()) {
    SCOPED_TRACE(made.name);
    const fs::path folder = root.path() / made.name;
    const auto model = load(
        folder, llama::read_llama_config(folder / "config.json"), made.head);
    const TreeView theirs = results.at(made.name);
    int64_t num_parameters = 0;
    for (const Tensor& parameter : model->parameters()) {
      num_parameters += parameter.numel();
    }
    EXPECT_EQ(num_parameters, theirs.at("num_parameters").as_int());
    const Tensor expected = theirs.at("last_hidden_state").as_tensor();
    const Tensor ours = model->forward(ids, mask);
    testing::expect_close(ours.index({mask}), expected.index({mask}),
                          {.what = made.name});
    EXPECT_LT((ours - expected).index({mask}).abs().max().item<float>(), 1e-4);
    // The first text has no padding; without a mask it is the same.
    testing::expect_close(model->forward(ids.slice(0, 0, 1)),
                          expected.slice(0, 0, 1), {.what = "no mask"});
  }
  // Turning without the scaling gives something else.
  llama::LlamaConfig plain =
      llama::read_llama_config(root.path() / "scaled" / "config.json");
  ASSERT_TRUE(plain.rope_scaling);
  plain.rope_scaling.reset();
  const auto other = load(root.path() / "scaled", plain, Head::kYes);
  EXPECT_FALSE(torch::allclose(
      other->forward(ids, mask).index({mask}),
      results.at("scaled").at("last_hidden_state").as_tensor().index({mask}),
      1e-3, 1e-3));
}

}  // namespace
}  // namespace lockstep
