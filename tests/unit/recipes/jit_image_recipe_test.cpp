#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/cli/command_line.h"
#include "lockstep/data/image.h"
#include "lockstep/error.h"
#include "lockstep/recipes/jit/image_recipe.h"
#include "unit/recipes/batch_of.h"

namespace lockstep {
namespace {

const JitShared kSmall = {.model = "JiT-B/4",
                          .image_size = 8,
                          .sample_steps = 2,
                          .width = 16,
                          .depth = 2,
                          .num_heads = 2};
const std::vector<std::string> kSmallFlags = {"--data_path=builtin:shapes"};

// A recipe with flags, data and a model whose weights are all random.
struct Ready {
  explicit Ready(std::vector<std::string> more = {}) {
    // Threads that wait for each other are slow where others work too.
    at::set_num_threads(1);
    std::vector<std::string> flags = kSmallFlags;
    flags.insert(flags.end(), more.begin(), more.end());
    line.parse(flags, {});
    data = recipe.open_data(line.config());
    torch::manual_seed(1);
    const torch::NoGradGuard no_grad;
    model = recipe.make_model();
    for (auto& parameter : model->parameters()) parameter.normal_(0, 0.2);
  }

  Batch batch(const std::vector<int64_t>& indices) const {
    return testing::batch_of(*data.train, indices);
  }

  double loss_of(const Batch& made) {
    const torch::NoGradGuard no_grad;
    SampleRandom random(made.seeds);
    return recipe.loss(made, random).sum.item<double>();
  }

  JitShared shared = kSmall;
  JitImageRecipe recipe{shared};
  CommandLine line{Command::kTrain, recipe};
  DataSets data;
  std::shared_ptr<torch::nn::Module> model;
};

at::Tensor seeds_of(std::vector<int64_t> seeds) {
  return torch::tensor(seeds, torch::kLong);
}

TEST(JitImageRecipe, TakesTheDefaultsOfThePaper) {
  JitImageRecipe recipe(kSmall);
  CommandLine line(Command::kTrain, recipe);
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
  JitImageRecipe recipe(kSmall);
  CommandLine line(Command::kTrain, recipe);
  line.parse(
      {"--lr_schedule=cosine", "--beta2=0.99", "--weight_decay=0.1",
       "--max_grad_norm=2", "--ema_decay=0.5", "--use_amp", "--no_drop_last"},
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
  Ready ready;
  const auto loss_of = [&](const std::vector<int64_t>& indices) {
    return ready.loss_of(ready.batch(indices));
  };
  const double whole = loss_of({0, 1, 2, 3, 4});
  EXPECT_NEAR(whole, loss_of({4, 2}) + loss_of({0}) + loss_of({3, 1}),
              1e-4 * whole);
  EXPECT_GT(whole, 0);
}

// The model predicts zero: the loss is |x|^2 / max(1 - t, t_eps)^2, and the
// second draw of a sample is its time.
TEST(JitImageRecipe, TimesAreTheSigmoidOfTheSecondDraw) {
  Ready ready({"--P_mean=0.5", "--P_std=1.5", "--t_eps=0.2"});
  const torch::NoGradGuard no_grad;
  for (auto& parameter : ready.model->parameters()) parameter.zero_();
  const Batch batch = ready.batch({0, 1, 2, 3, 4, 5, 6, 7});
  SampleRandom random(batch.seeds);
  random.uniform({});
  const auto t = (0.5 + 1.5 * random.normal({})).sigmoid();
  const auto levels = batch[0].to(torch::kFloat) / 127.5 - 1;
  const auto expected = levels.square().mean({1, 2, 3}) /
                        torch::maximum(1 - t, torch::tensor(0.2)).square();
  EXPECT_NEAR(ready.loss_of(batch), expected.sum().item<double>(), 1e-4);
}

// With probability 1 no class matters, with 0 every one does.
TEST(JitImageRecipe, DropsClassesAsOftenAsAsked) {
  const auto changes = [](const std::string& probability) {
    Ready ready({"--label_drop_prob=" + probability});
    int count = 0;
    for (int64_t i = 0; i < 200; ++i) {
      Batch batch = ready.batch({i});
      const double before = ready.loss_of(batch);
      batch.tensors[1] = (batch.tensors[1] + 1) % 10;
      if (ready.loss_of(batch) != before) ++count;
    }
    return count;
  };
  EXPECT_EQ(changes("0"), 200);
  EXPECT_EQ(changes("1"), 0);
  EXPECT_NEAR(changes("0.1"), 180, 15);
}

TEST(JitImageRecipe, DrawsASamplingAsOneImage) {
  Ready ready;
  ASSERT_EQ(ready.recipe.facts().num_sample_items, 100);
  const torch::NoGradGuard no_grad;
  SampleRandom random(seeds_of({1, 2, 3}));
  const std::vector<int64_t> items = {0, 57, 99};
  const auto images = ready.recipe.sample(items, random);
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{3, 3, 8, 8}));
  EXPECT_EQ(images.scalar_type(), torch::kByte);
  // An item depends on its number and draws alone.
  SampleRandom again(seeds_of({2}));
  const auto alone =
      ready.recipe.sample(std::vector<int64_t>{57}, again).to(torch::kInt);
  EXPECT_LE((alone[0] - images[1].to(torch::kInt)).abs().max().item<int>(), 1);
  const auto files =
      ready.recipe.render(torch::zeros({100, 3, 8, 8}, torch::kByte));
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, "images/step{step}_cfg2.9{weights}.png");
  const ImageSize size = size_of_image(files[0].bytes);
  EXPECT_EQ(size.width, 100);
  EXPECT_EQ(size.height, 100);
}

TEST(JitImageRecipe, GeneratesTheClassesInTurn) {
  Ready ready;
  const torch::NoGradGuard no_grad;
  const auto image = [&](auto make, int64_t item) {
    SampleRandom random(seeds_of({5}));
    return (ready.recipe.*make)(std::vector<int64_t>{item}, random);
  };
  // Classes 3 and 4; a sampling shows ten of each class.
  const auto of_class_3 = image(&JitImageRecipe::generate, 3);
  EXPECT_TRUE(torch::equal(of_class_3, image(&JitImageRecipe::generate, 13)));
  EXPECT_TRUE(torch::equal(of_class_3, image(&JitImageRecipe::sample, 38)));
  EXPECT_FALSE(torch::equal(of_class_3, image(&JitImageRecipe::generate, 4)));
  EXPECT_EQ(of_class_3.sizes(), (std::vector<int64_t>{1, 3, 8, 8}));
}

// With weight 1 the half without classes is left out.
TEST(JitImageRecipe, GuidanceHasTheAskedWeight) {
  const auto image = [](const std::vector<std::string>& flags) {
    Ready ready(flags);
    const torch::NoGradGuard no_grad;
    SampleRandom random(seeds_of({5, 6}));
    const std::vector<int64_t> items = {0, 1};
    return ready.recipe.generate(items, random).to(torch::kInt);
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
  const Ready more({"--class_num=12"});
  EXPECT_EQ(more.model
                ->named_parameters()["net.y_embedder.embedding_table"
                                     ".weight"]
                .size(0),
            13);
  JitImageRecipe recipe(kSmall);
  CommandLine line(Command::kTrain, recipe);
  line.parse({"--data_path=builtin:shapes", "--class_num=9"}, {});
  EXPECT_THROW(recipe.open_data(line.config()), ConfigError);
}

TEST(JitImageRecipe, RefusesAPatchThatDoesNotDivideTheImage) {
  const JitShared shared = {.model = "JiT-B/5", .image_size = 64};
  JitImageRecipe recipe(shared);
  CommandLine line(Command::kTrain, recipe);
  line.parse({"--data_path=builtin:shapes"}, {});
  EXPECT_THROW(recipe.open_data(line.config()), ConfigError);
}

}  // namespace
}  // namespace lockstep
