#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/data/image.h"
#include "lockstep/error.h"
#include "lockstep/recipes/jit/jit.h"
#include "lockstep/sampling.h"
#include "lockstep/world.h"
#include "support/temp_dir.h"
#include "support/weights.h"
#include "unit/recipes/built_task.h"

namespace lockstep {
namespace {

using testing::TempDir;

using Words = std::vector<std::string>;

const Words kSmallJitText = {"--img_size=8", "--dim=32", "--depth=2",
                             "--heads=2", "--sample_steps=4"};

struct ReadyJitText : testing::BuiltTask<recipes::JitRecipe> {
  explicit ReadyJitText(const Words& more)
      : BuiltTask(testing::with_flags(kSmallJitText, more)) {}

  void set_all_random() const { testing::set_all_random(*model, 0.1); }

  at::Tensor samples(const std::vector<int64_t>& items) {
    const torch::NoGradGuard no_grad;
    std::vector<int64_t> seeds;
    for (const int64_t item : items) seeds.push_back(item + 100);
    SampleRandom random(torch::tensor(seeds, torch::kLong));
    return as<Sampling>().sample(items, random);
  }
};

const std::string kGenerated = "--data_path=builtin:text";

const OutputFile& file_named(const std::vector<OutputFile>& files,
                             const std::string& name) {
  for (const OutputFile& file : files) {
    if (file.name == name) return file;
  }
  throw std::runtime_error("no file " + name);
}

TEST(JitTextRecipe, TheOptimizerKnowsAllParametersWithAndWithoutCondition) {
  for (const bool has_condition : {false, true}) {
    ReadyJitText ready({kGenerated, has_condition ? "--enable_condition"
                                                  : "--no_enable_condition"});
    const auto groups = ready.task->parameter_groups();
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].parameters.size(), ready.model->parameters().size());
    for (const auto& item : ready.model->named_parameters()) {
      EXPECT_EQ(item.value().requires_grad(),
                has_condition || !item.key().starts_with("cond"))
          << item.key();
    }
  }
}

// Never shorter than the text, never longer than the longest.
TEST(JitTextRecipe, ShowsSomeTextsWithPadding) {
  const TempDir folder;
  const std::string data =
      "--data_path=" + folder.write("a.txt", "x\nabcdefghijklmnopqrs\n");
  ReadyJitText ready({data});
  ready.set_all_random();
  ReadyJitText never({data, "--show_padding=0"});
  never.set_all_random();
  std::set<double> counts;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    Batch batch = ready.batch({0});
    batch.seeds = torch::tensor({epoch}, torch::kLong);
    counts.insert(ready.loss_of(batch).normaliser.item<double>());
    EXPECT_EQ(never.loss_of(batch).normaliser.item<double>(), 2);
  }
  EXPECT_EQ(*counts.begin(), 2);
  EXPECT_GT(counts.size(), 8U);
  EXPECT_LE(*counts.rbegin(), 20);
}

TEST(JitTextRecipe, RefusesSettingsThatDoNotFit) {
  EXPECT_THROW(ReadyJitText({kGenerated, "--cond_img_size=16"}), ConfigError);
  EXPECT_THROW(ReadyJitText({kGenerated, "--predict_clean=false"}),
               ConfigError);
  EXPECT_THROW(ReadyJitText({kGenerated, "--max_tokens=65"}), ConfigError);
  EXPECT_THROW(ReadyJitText({kGenerated, "--tokenizer_path=absent"}),
               ConfigError);
  EXPECT_THROW(ReadyJitText({kGenerated, "--prompt=" + std::string(64, 'x')}),
               ConfigError);
  EXPECT_NO_THROW(
      ReadyJitText({kGenerated, "--cond_img_size=8", "--predict_clean"}));
}

TEST(JitTextRecipe, ALossIsTheSumOfItsSamplesLosses) {
  ReadyJitText ready({kGenerated, "--show_padding=0"});
  ready.set_all_random();
  const auto sums = [&](const std::vector<int64_t>& indices) {
    const Loss loss = ready.loss_of(ready.batch(indices));
    return std::pair(loss.sum.item<double>(), loss.normaliser.item<double>());
  };
  const auto whole = sums({0, 1, 2});
  const auto first = sums({2, 0});
  const auto second = sums({1});
  EXPECT_NEAR(whole.first, first.first + second.first, 1e-4 * whole.first);
  EXPECT_EQ(whole.second, first.second + second.second);
  EXPECT_EQ(whole.second, ready.batch({0, 1, 2})[1].sum().item<double>());
}

// Also when a text has one token: its patch counts.
TEST(JitTextRecipe, ScoresPixelsWithATokenOnly) {
  const TempDir folder;
  ReadyJitText ready({"--data_path=" + folder.write("a.txt", "x\nyz\n")});
  ready.set_all_random();
  Batch batch = ready.batch({0, 1});
  const double before = ready.loss_of(batch).sum.item<double>();
  EXPECT_GT(before, 0);
  const auto is_empty = batch.tensors[1].eq(0).unsqueeze(1);
  batch.tensors[0] = batch.tensors[0].masked_fill(is_empty, 7);
  // Pixels beside a token are seen, but not scored.
  Loss changed = ready.loss_of(batch);
  changed.sum.backward();
  EXPECT_EQ(changed.normaliser.item<double>(), 5);
  for (const auto& item : ready.model->named_parameters()) {
    EXPECT_EQ(item.value().grad().defined(), item.value().requires_grad())
        << item.key();
  }
}

TEST(JitTextRecipe, EvaluatesLossAndTokensAtFixedTimes) {
  ReadyJitText ready({kGenerated});
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : ready.model->parameters()) parameter.zero_();
  }
  const torch::NoGradGuard no_grad;
  const Batch batch = ready.batch({0, 1, 2});
  SampleRandom random(batch.seeds);
  MetricSums sums;
  ready.task->evaluate(batch, random, sums);
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  const Metrics metrics = sums.result(world);
  // It predicts black: what is lost is the image, and no byte is 0.
  const auto clean = batch[0].to(at::kDouble) / 255;
  const double black =
      ((clean.square() * batch[1].unsqueeze(1)).sum() / batch[1].sum())
          .item<double>();
  EXPECT_NEAR(*find_metric(metrics, "loss"), black, 1e-5);
  EXPECT_EQ(metrics.size(), 6U);
  EXPECT_EQ(*find_metric(metrics, "token_accuracy_t100"), 0);
  EXPECT_EQ(*find_metric(metrics, "token_accuracy_t900"), 0);
}

TEST(JitTextRecipe, AnItemDependsOnItsNumberAndDrawsAlone) {
  ReadyJitText ready({kGenerated});
  ready.set_all_random();
  const auto several = ready.samples({0, 3, 5});
  EXPECT_EQ(several.sizes(), (std::vector<int64_t>{3, 3, 8, 8}));
  EXPECT_EQ(several.scalar_type(), at::kByte);
  const auto alone = ready.samples({3}).to(at::kInt)[0];
  EXPECT_LE((alone - several[1].to(at::kInt)).abs().max().item<int>(), 1);
}

TEST(JitTextRecipe, ContinuesAPrompt) {
  ReadyJitText ready({kGenerated, "--prompt=Once upon a time"});
  ready.set_all_random();
  const auto files = ready.as<Sampling>().render(ready.samples({0, 1}));
  const auto results = nlohmann::json::parse(
      file_named(files, "texts/step{step}{weights}/results.json").bytes);
  ASSERT_EQ(results.size(), 2U);
  for (const auto& result : results) {
    EXPECT_EQ(result["prompt"], "Once upon a time");
    EXPECT_TRUE(result["generated_text"].get<std::string>().starts_with(
        "Once upon a time"));
    EXPECT_GE(result["num_tokens"].get<int>(), 16);
  }
}

TEST(JitTextRecipe, WritesTextsAndTheirImages) {
  ReadyJitText ready({kGenerated, "--enable_condition", "--num_texts=2"});
  ready.set_all_random();
  EXPECT_EQ(ready.as<Sampling>().num_items(), 2);
  const auto sample = ready.data.train->get(3, 0);
  const auto files =
      ready.as<Sampling>().render(torch::stack({sample[0], sample[0]}));
  EXPECT_EQ(files.size(), 6U);
  const auto& file =
      file_named(files, "texts/step{step}{weights}/generated_1.png");
  const data::Image image = data::decode_image(file.bytes);
  EXPECT_EQ(image.width, 8);
  // Red is the lowest digit: the first letter.
  EXPECT_EQ(image.pixels[0], sample[0][2][0][0].item<uint8_t>());
  const auto& condition =
      file_named(files, "texts/step{step}{weights}/generated_0_condition.png");
  EXPECT_FALSE(condition.bytes.empty());
  const auto& text = file_named(files, "texts/step{step}{weights}.txt");
  const auto results = nlohmann::json::parse(
      file_named(files, "texts/step{step}{weights}/results.json").bytes);
  const auto generated = results[1]["generated_text"].get<std::string>();
  EXPECT_TRUE(generated.ends_with('.')) << generated;
  EXPECT_NE(text.bytes.find(generated), std::string::npos);
}

}  // namespace
}  // namespace lockstep
