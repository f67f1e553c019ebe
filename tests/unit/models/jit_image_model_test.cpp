#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/models/jit/image_model.h"
#include "lockstep/tensor/autocast.h"
#include "support/seen_operations.h"
#include "support/weights.h"

namespace lockstep {
namespace {

using testing::num_trainable;
using testing::set_all_random;
using Shape = std::vector<int64_t>;
using Names = std::vector<std::pair<std::string, Shape>>;

const jit::JitImageConfig kSmallJitImage = {.image_size = 16,
                                            .patch = 4,
                                            .width = 32,
                                            .depth = 4,
                                            .num_heads = 2,
                                            .num_classes = 3,
                                            .bottleneck = 8,
                                            .num_context = 5,
                                            .context_start = 1};

// Blocks are alike: two models of few blocks tell the size of one of many,
// without its gigabytes.
int64_t num_trainable_of(const std::string& name, int64_t image_size) {
  jit::JitImageConfig config =
      jit::jit_image_config(jit::parse_jit_variant(name), image_size, 1000);
  const int64_t depth = config.depth;
  config.depth = 1;
  config.context_start = 0;
  const int64_t one = num_trainable(jit::JitImage(config));
  config.depth = 2;
  return one + (depth - 1) * (num_trainable(jit::JitImage(config)) - one);
}

void add(Names& all, const std::string& name, const Shape& weight) {
  all.emplace_back(name + ".weight", weight);
  all.emplace_back(name + ".bias", Shape{weight[0]});
}

// The state dict of the paper's code for size B.
Names original_names(int64_t patch, int64_t num_patches) {
  Names all = {{"net.pos_embed", {1, num_patches, 768}},
               {"net.in_context_posemb", {1, 32, 768}}};
  add(all, "net.t_embedder.mlp.0", {768, 256});
  add(all, "net.t_embedder.mlp.2", {768, 768});
  all.emplace_back("net.y_embedder.embedding_table.weight", Shape{1001, 768});
  all.emplace_back("net.x_embedder.proj1.weight", Shape{128, 3, patch, patch});
  add(all, "net.x_embedder.proj2", {768, 128, 1, 1});
  for (int i = 0; i < 12; ++i) {
    const std::string block = "net.blocks." + std::to_string(i) + ".";
    all.emplace_back(block + "norm1.weight", Shape{768});
    all.emplace_back(block + "attn.q_norm.weight", Shape{64});
    all.emplace_back(block + "attn.k_norm.weight", Shape{64});
    add(all, block + "attn.qkv", {2304, 768});
    add(all, block + "attn.proj", {768, 768});
    all.emplace_back(block + "norm2.weight", Shape{768});
    add(all, block + "mlp.w12", {4096, 768});
    add(all, block + "mlp.w3", {768, 2048});
    add(all, block + "adaLN_modulation.1", {4608, 768});
  }
  all.emplace_back("net.final_layer.norm_final.weight", Shape{768});
  add(all, "net.final_layer.linear", {3 * patch * patch, 768});
  add(all, "net.final_layer.adaLN_modulation.1", {1536, 768});
  return all;
}

TEST(JitImageModel, HasTheParametersOfThePaper) {
  EXPECT_EQ(num_trainable_of("JiT-B/4", 64), 130'477'872);
  EXPECT_EQ(num_trainable_of("JiT-B/16", 256), 131'123'712);
  EXPECT_EQ(num_trainable_of("JiT-B/32", 512), 133'190'400);
  EXPECT_EQ(num_trainable_of("JiT-L/16", 256), 458'877'664);
  EXPECT_EQ(num_trainable_of("JiT-H/16", 256), 952'514'368);
}

TEST(JitImageModel, HasTheNamesShapesAndOrderOfTheOriginal) {
  for (const auto& [name, image_size] :
       {std::pair("JiT-B/4", 64), std::pair("JiT-B/16", 256)}) {
    const jit::JitVariant variant = jit::parse_jit_variant(name);
    const jit::JitImage model(jit::jit_image_config(variant, image_size, 1000));
    Names ours;
    for (const auto& item : model.named_parameters()) {
      ours.emplace_back(item.key(), item.value().sizes().vec());
      EXPECT_EQ(item.value().requires_grad(), item.key() != "net.pos_embed");
    }
    EXPECT_EQ(ours, original_names(variant.patch, 256));
    EXPECT_TRUE(model.named_buffers().is_empty());
  }
}

TEST(JitImageModel, SizesHaveTheBottleneckAndStartOfThePaper) {
  const auto config = [](const char* name) {
    return jit::jit_image_config(jit::parse_jit_variant(name), 256, 1000);
  };
  EXPECT_EQ(config("JiT-B/16").bottleneck, 128);
  EXPECT_EQ(config("JiT-L/16").bottleneck, 128);
  EXPECT_EQ(config("JiT-H/16").bottleneck, 256);
  EXPECT_EQ(config("JiT-B/16").context_start, 4);
  EXPECT_EQ(config("JiT-L/16").context_start, 8);
  EXPECT_EQ(config("JiT-H/16").context_start, 10);
}

TEST(JitImageModel, BeginsAsZeroAndGivesEveryParameterAGradient) {
  for (const int64_t start : {0, 1, 3}) {
    jit::JitImageConfig config = kSmallJitImage;
    config.context_start = start;
    jit::JitImage model(config);
    const auto forward = [&] {
      return model.forward(torch::randn({2, 3, 16, 16}), torch::rand({2}),
                           torch::tensor({0, 3}));
    };
    EXPECT_EQ(forward().abs().max().item<float>(), 0);
    set_all_random(model, 0.2);
    forward().square().sum().backward();
    for (const auto& item : model.named_parameters()) {
      if (!item.value().requires_grad()) continue;
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().max().item<float>(), 0) << item.key();
    }
  }
}

TEST(JitImageModel, BeginsWithTheWeightsOfThePaper) {
  torch::manual_seed(1);
  jit::JitImageConfig config = kSmallJitImage;
  config.width = 128;
  const jit::JitImage model(config);
  const auto all = model.named_parameters();
  const auto deviation = [&](const std::string& name) {
    return all[name].std().item<double>();
  };
  const auto is_all = [&](const std::string& name, double value) {
    return (all[name] == value).all().item<bool>();
  };
  for (const char* name :
       {"net.in_context_posemb", "net.y_embedder.embedding_table.weight",
        "net.t_embedder.mlp.0.weight", "net.t_embedder.mlp.2.weight"}) {
    EXPECT_NEAR(deviation(name), 0.02, 0.003) << name;
  }
  // Xavier's uniform distribution: deviation sqrt(2 / (in + out)).
  EXPECT_NEAR(deviation("net.blocks.1.attn.qkv.weight"),
              std::sqrt(2.0 / (128 + 384)), 1e-3);
  EXPECT_NEAR(deviation("net.blocks.1.mlp.w3.weight"),
              std::sqrt(2.0 / (341 + 128)), 1e-3);
  EXPECT_NEAR(deviation("net.x_embedder.proj1.weight"),
              std::sqrt(2.0 / (48 + 8)), 0.02);
  EXPECT_NEAR(deviation("net.x_embedder.proj2.weight"),
              std::sqrt(2.0 / (8 + 128)), 0.01);
  for (const char* name :
       {"net.x_embedder.proj2.bias", "net.blocks.0.attn.qkv.bias",
        "net.blocks.0.adaLN_modulation.1.weight",
        "net.final_layer.adaLN_modulation.1.bias",
        "net.final_layer.linear.weight"}) {
    EXPECT_TRUE(is_all(name, 0)) << name;
  }
  EXPECT_TRUE(is_all("net.blocks.0.attn.q_norm.weight", 1));
}

// Blocks 1 and 2 of 4, blocks 3 to 8 of 12.
TEST(JitImageModel, DropsOutInTheMiddleHalfOnly) {
  const auto repeats = [](jit::JitImageConfig config, int64_t used_block) {
    torch::manual_seed(2);
    jit::JitImage model(config);
    set_all_random(model, 0.2);
    const torch::NoGradGuard no_grad;
    // Without gates a block is the identity.
    for (const auto& item : model.named_parameters()) {
      const std::string own = "blocks." + std::to_string(used_block) + ".";
      if (item.key().find("blocks.") != std::string::npos &&
          item.key().find("adaLN") != std::string::npos &&
          item.key().find(own) == std::string::npos) {
        item.value().zero_();
      }
    }
    const auto x = torch::randn({1, 3, 16, 16});
    const auto forward = [&] {
      return model.forward(x, torch::rand({1}).fill_(0.5), torch::tensor({0}));
    };
    return torch::equal(forward(), forward());
  };
  for (const bool is_attention : {true, false}) {
    jit::JitImageConfig config = kSmallJitImage;
    (is_attention ? config.attn_dropout : config.proj_dropout) = 0.5;
    EXPECT_TRUE(repeats(config, 0));
    EXPECT_FALSE(repeats(config, 1));
    EXPECT_FALSE(repeats(config, 2));
    EXPECT_TRUE(repeats(config, 3));
  }
}

TEST(JitImageModel, RunsInDoublePrecisionToo) {
  jit::JitImage model(kSmallJitImage);
  set_all_random(model, 0.2);
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({1, 3, 16, 16});
  const auto t = torch::tensor({0.3F});
  const auto y = torch::tensor({1});
  const auto single = model.forward(x, t, y);
  model.to(torch::kDouble);
  const auto precise =
      model.forward(x.to(torch::kDouble), t.to(torch::kDouble), y);
  EXPECT_EQ(precise.scalar_type(), torch::kDouble);
  EXPECT_TRUE(torch::allclose(precise.to(torch::kFloat), single, 1e-3, 1e-4));
}

// Norms read the residual stream twice in every block, then in the last layer,
// where the class tokens are cut off.
TEST(JitImageModel, TheResidualStreamIsContiguousInEveryBlock) {
  jit::JitImage model(kSmallJitImage);
  set_all_random(model, 0.2);
  int num_norms = 0;
  const testing::SeenOperations seen([&](const at::RecordFunction& operation) {
    if (std::string_view(operation.name()) != "aten::rms_norm") return;
    const at::Tensor x = operation.inputs()[0].toTensor();
    if (x.dim() != 3) return;  // Queries and keys.
    const bool is_in_block = num_norms++ < 2 * kSmallJitImage.depth;
    EXPECT_TRUE(x.is_contiguous() || !is_in_block) << x.strides();
  });
  model.forward(torch::randn({2, 3, 16, 16}), torch::rand({2}),
                torch::tensor({0, 2}));
  EXPECT_EQ(num_norms, 2 * kSmallJitImage.depth + 1);
}

TEST(JitImageModel, RunsUnderAutocast) {
  torch::manual_seed(3);
  jit::JitImage model(kSmallJitImage);
  set_all_random(model, 0.2);
  const auto x = torch::randn({2, 3, 16, 16});
  const auto t = torch::tensor({0.3F, 0.9F});
  const auto y = torch::tensor({1, 3});
  const auto exact = model.forward(x, t, y);
  at::Tensor rough;
  {
    const tensor::Autocast autocast(c10::DeviceType::CPU, torch::kBFloat16);
    rough = model.forward(x, t, y);
  }
  rough.square().sum().backward();
  EXPECT_EQ(rough.scalar_type(), torch::kBFloat16);
  EXPECT_LT((rough - exact).norm().item<float>(),
            0.05 * exact.norm().item<float>());
  EXPECT_GT((rough - exact).abs().max().item<float>(), 0);
  EXPECT_EQ(model.parameters()[1].grad().scalar_type(), torch::kFloat);
}

TEST(JitImageModel, CountsItsWork) {
  // The paper's 25, 88 and 182 G multiplications, rounded.
  const auto work = [](const char* name) {
    return jit::jit_image_forward_flops(
               jit::jit_image_config(jit::parse_jit_variant(name), 256, 1000)) /
           2e9;
  };
  EXPECT_NEAR(work("JiT-B/16"), 25, 1);
  EXPECT_NEAR(work("JiT-L/16"), 88, 2);
  EXPECT_NEAR(work("JiT-H/16"), 182, 4);
}

TEST(JitImageModel, RefusesSizesThatDoNotFit) {
  const auto text = [](const jit::JitImageConfig& config) -> std::string {
    try {
      jit::check_jit_image_config(config);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(text(kSmallJitImage), "");
  EXPECT_NE(text({.image_size = 30, .patch = 4}).find("--img_size 30"),
            std::string::npos);
  EXPECT_NE(text({.width = 32, .num_heads = 3}).find("--heads 3"),
            std::string::npos);
  EXPECT_NE(text({.width = 36, .num_heads = 6}).find("--dim 36"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
