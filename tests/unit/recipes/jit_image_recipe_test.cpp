#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/data/image.h"
#include "lockstep/error.h"
#include "lockstep/image_scoring.h"
#include "lockstep/recipes/jit/jit.h"
#include "lockstep/sampling.h"
#include "support/weights.h"
#include "unit/recipes/built_task.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

const Words kSmallJitImage = {"--data_path=builtin:shapes",
                              "--model=JiT-B/4",
                              "--img_size=8",
                              "--sample_steps=2",
                              "--dim=16",
                              "--depth=2",
                              "--heads=2"};

// With a model whose weights are all random.
struct ReadyJitImage : testing::BuiltTask<recipes::JitRecipe> {
  explicit ReadyJitImage(const Words& more = {})
      : BuiltTask(testing::with_flags(kSmallJitImage, more)) {
    testing::set_all_random(*model, 0.2);
  }
};

at::Tensor seeds_of(std::vector<int64_t> seeds) {
  return torch::tensor(seeds, torch::kLong);
}

TEST(JitImageRecipe, TakesTheDefaultsOfThePaper) {
  recipes::JitRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--data_path=builtin:shapes"}, {});
  const TrainConfig& config = line.config();
  EXPECT_EQ(config.optimization.lr_schedule, "constant");
  EXPECT_EQ(config.optimization.beta2, 0.95);
  EXPECT_EQ(config.optimization.weight_decay, 0);
  EXPECT_EQ(config.optimization.max_grad_norm, 0);
  EXPECT_EQ(config.optimization.ema_decay,
            (std::vector<double>{0.9999, 0.9996}));
  EXPECT_EQ(config.precision, "auto");
  EXPECT_TRUE(config.drop_last);
}

TEST(JitImageRecipe, KeepsWhatWasGiven) {
  recipes::JitRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--data_kind=images", "--lr_schedule=cosine", "--beta2=0.99",
              "--weight_decay=0.1", "--max_grad_norm=2", "--ema_decay=0.5",
              "--use_amp", "--no_drop_last"},
             {});
  const TrainConfig& config = line.config();
  EXPECT_EQ(config.optimization.lr_schedule, "cosine");
  EXPECT_EQ(config.optimization.beta2, 0.99);
  EXPECT_EQ(config.optimization.weight_decay, 0.1);
  EXPECT_EQ(config.optimization.max_grad_norm, 2);
  EXPECT_EQ(config.optimization.ema_decay, std::vector<double>{0.5});
  EXPECT_EQ(config.precision, "fp32");
  EXPECT_FALSE(config.drop_last);
}

TEST(JitImageRecipe, ALossIsTheSumOfItsSamplesLosses) {
  ReadyJitImage ready;
  const auto loss_of = [&](const std::vector<int64_t>& indices) {
    return ready.loss_sum(ready.batch(indices));
  };
  const double whole = loss_of({0, 1, 2, 3, 4});
  EXPECT_NEAR(whole, loss_of({4, 2}) + loss_of({0}) + loss_of({3, 1}),
              1e-4 * whole);
  EXPECT_GT(whole, 0);
}

// The model predicts zero: the loss is |x|^2 / max(1 - t, t_eps)^2, and the
// second draw of a sample is its time.
TEST(JitImageRecipe, TimesAreTheSigmoidOfTheSecondDraw) {
  ReadyJitImage ready({"--P_mean=0.5", "--P_std=1.5", "--t_eps=0.2"});
  const torch::NoGradGuard no_grad;
  for (auto& parameter : ready.model->parameters()) parameter.zero_();
  const Batch batch = ready.batch({0, 1, 2, 3, 4, 5, 6, 7});
  SampleRandom random(batch.seeds);
  random.uniform({});
  const auto t = (0.5 + 1.5 * random.normal({})).sigmoid();
  const auto levels = batch[0].to(torch::kFloat) / 127.5 - 1;
  const auto expected = levels.square().mean({1, 2, 3}) /
                        torch::maximum(1 - t, torch::tensor(0.2)).square();
  EXPECT_NEAR(ready.loss_sum(batch), expected.sum().item<double>(), 1e-4);
}

// With probability 1 no class matters, with 0 every one does.
TEST(JitImageRecipe, DropsClassesAsOftenAsAsked) {
  const auto changes = [](const std::string& probability) {
    ReadyJitImage ready({"--label_drop_prob=" + probability});
    int count = 0;
    for (int64_t i = 0; i < 200; ++i) {
      Batch batch = ready.batch({i});
      const double before = ready.loss_sum(batch);
      batch.tensors[1] = (batch.tensors[1] + 1) % 10;
      if (ready.loss_sum(batch) != before) ++count;
    }
    return count;
  };
  EXPECT_EQ(changes("0"), 200);
  EXPECT_EQ(changes("1"), 0);
  EXPECT_NEAR(changes("0.1"), 180, 15);
}

TEST(JitImageRecipe, DrawsASamplingAsOneImage) {
  ReadyJitImage ready;
  auto& sampling = ready.as<Sampling>();
  ASSERT_EQ(sampling.num_items(), 100);
  const torch::NoGradGuard no_grad;
  SampleRandom random(seeds_of({1, 2, 3}));
  const std::vector<int64_t> items = {0, 57, 99};
  const auto images = sampling.sample(items, random);
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{3, 3, 8, 8}));
  EXPECT_EQ(images.scalar_type(), torch::kByte);
  // An item depends on its number and draws alone.
  SampleRandom again(seeds_of({2}));
  const auto alone =
      sampling.sample(std::vector<int64_t>{57}, again).to(torch::kInt);
  EXPECT_LE((alone[0] - images[1].to(torch::kInt)).abs().max().item<int>(), 1);
  const auto files =
      sampling.render(torch::zeros({100, 3, 8, 8}, torch::kByte));
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, "images/step{step}_cfg2.9{weights}.png");
  const data::ImageSize size = data::size_of_image(files[0].bytes);
  EXPECT_EQ(size.width, 100);
  EXPECT_EQ(size.height, 100);
}

TEST(JitImageRecipe, GeneratesTheClassesInTurn) {
  ReadyJitImage ready;
  const torch::NoGradGuard no_grad;
  const auto generated = [&](int64_t item) {
    SampleRandom random(seeds_of({5}));
    return ready.as<ImageScoring>().generate(std::vector<int64_t>{item},
                                             random);
  };
  SampleRandom random(seeds_of({5}));
  // Classes 3 and 4; a sampling shows ten of each class.
  const auto of_class_3 = generated(3);
  EXPECT_TRUE(torch::equal(of_class_3, generated(13)));
  EXPECT_TRUE(torch::equal(of_class_3, ready.as<Sampling>().sample(
                                           std::vector<int64_t>{38}, random)));
  EXPECT_FALSE(torch::equal(of_class_3, generated(4)));
  EXPECT_EQ(of_class_3.sizes(), (std::vector<int64_t>{1, 3, 8, 8}));
}

// With weight 1 the half without classes is left out.
TEST(JitImageRecipe, GuidanceHasTheAskedWeight) {
  const auto image = [](const std::vector<std::string>& flags) {
    ReadyJitImage ready(flags);
    const torch::NoGradGuard no_grad;
    SampleRandom random(seeds_of({5, 6}));
    const std::vector<int64_t> items = {0, 1};
    return ready.as<ImageScoring>().generate(items, random).to(torch::kInt);
  };
  const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<int>();
  };
  const auto alone = image({"--cfg=1"});
  EXPECT_LE(difference(image({"--cfg=1.0000001"}), alone), 1);
  EXPECT_GT(difference(image({"--cfg=2.9"}), alone), 1);
  EXPECT_LE(difference(image({"--cfg=2.9", "--interval_min=0.9"}), alone), 1);
  EXPECT_GT(difference(image({"--cfg=1", "--sampling_method=euler"}), alone),
            1);
}

TEST(JitImageRecipe, MayHaveMoreClassesThanTheDataButNotFewer) {
  const ReadyJitImage more({"--class_num=12"});
  EXPECT_EQ(more.model
                ->named_parameters()["net.y_embedder.embedding_table"
                                     ".weight"]
                .size(0),
            13);
  EXPECT_THROW(ReadyJitImage({"--class_num=9"}), ConfigError);
}

TEST(JitImageRecipe, RefusesAPatchThatDoesNotDivideTheImage) {
  EXPECT_THROW(ReadyJitImage({"--model=JiT-B/5", "--img_size=64"}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
