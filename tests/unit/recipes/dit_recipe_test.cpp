#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "lockstep/data/image.h"
#include "lockstep/datasets/images/image_sets.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/learner.h"
#include "lockstep/error.h"
#include "lockstep/formats/image_grid.h"
#include "lockstep/models/dit/flow.h"
#include "lockstep/recipes/dit/dit.h"
#include "lockstep/recipes/images/grid.h"
#include "lockstep/recipes/images/sampling.h"
#include "lockstep/sampling.h"
#include "support/cifar10_files.h"
#include "support/temp_dir.h"
#include "support/weights.h"
#include "unit/recipes/built_task.h"

namespace lockstep {
namespace {

using testing::TempDir;

using Words = std::vector<std::string>;

const Words kSmallDit = {"--data_path=builtin:shapes",
                         "--dim=16",
                         "--depth=1",
                         "--heads=2",
                         "--patch=4",
                         "--img_size=8"};

// With a model whose weights are all random.
struct ReadyDit : testing::BuiltTask<recipes::DitRecipe> {
  explicit ReadyDit(const Words& more = {})
      : BuiltTask(testing::with_flags(kSmallDit, more)) {
    testing::set_all_random(*model, 0.2);
  }
};

TEST(DitRecipe, HasTheDefaultsOfTheGuide) {
  recipes::DitRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({}, {});
  const TrainConfig& config = line.config();
  EXPECT_EQ(config.batch_size, 128);
  EXPECT_EQ(config.n_steps, 200'000);
  EXPECT_EQ(config.optimization.lr, 1e-4);
  EXPECT_EQ(config.optimization.optimizer, "adamw");
  EXPECT_EQ(config.optimization.weight_decay, 0);
  EXPECT_EQ(config.optimization.lr_schedule, "constant");
  EXPECT_EQ(config.optimization.ema_decay, std::vector<double>{0.9999});
  EXPECT_TRUE(config.optimization.ema_warmup);
  EXPECT_TRUE(config.drop_last);
  EXPECT_TRUE(config.records.use_wandb);
  EXPECT_EQ(config.records.wandb_project, "dit-cfm");
  EXPECT_EQ(config.sample_every, 10'000);
  EXPECT_EQ(ReadyDit().as<Sampling>().num_items(), 300);
}

TEST(DitRecipe, GivenEpochsDecideInPlaceOfTheDefaultSteps) {
  recipes::DitRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--epochs=3", "--val_every_epochs=1", "--save_every=5"}, {});
  EXPECT_FALSE(line.config().n_steps);
  EXPECT_FALSE(line.config().val_every);
  EXPECT_EQ(line.config().save_every, 5);
}

TEST(DitRecipe, ALossIsTheSumOfItsSamplesLosses) {
  ReadyDit ready;
  const auto loss_of = [&](const std::vector<int64_t>& indices) {
    return ready.loss_sum(ready.batch(indices));
  };
  const double whole = loss_of({0, 1, 2, 3, 4});
  const double parts = loss_of({4, 2}) + loss_of({0}) + loss_of({3, 1});
  EXPECT_NEAR(whole, parts, 1e-4 * whole);
  EXPECT_GT(whole, 0);
}

// With dropout 1 no class matters, with 0 every one does.
TEST(DitRecipe, DropsClassesAsOftenAsAsked) {
  const auto change_by_label = [](const std::string& dropout) {
    ReadyDit ready({"--class_dropout=" + dropout});
    int changed = 0;
    for (int64_t i = 0; i < 200; ++i) {
      Batch batch = ready.batch({i});
      const double before = ready.loss_sum(batch);
      batch.tensors[1] = (batch.tensors[1] + 1) % 10;
      if (ready.loss_sum(batch) != before) ++changed;
    }
    return changed;
  };
  EXPECT_EQ(change_by_label("0"), 200);
  EXPECT_EQ(change_by_label("1"), 0);
  EXPECT_NEAR(change_by_label("0.1"), 180, 15);
}

TEST(DitRecipe, DrawsASamplingAsAImageAndAFilmPerScale) {
  ReadyDit ready({"--cfg_scales=1.0,2.25", "--sample_steps=4"});
  auto& sampling = ready.as<Sampling>();
  ASSERT_EQ(sampling.num_items(), 200);
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> items = {0, 57, 199};
  std::vector<int64_t> seeds = {1, 2, 3};
  SampleRandom random(torch::tensor(seeds, torch::kLong));
  const auto trajectories = sampling.sample(items, random);
  EXPECT_EQ(trajectories.sizes(), (std::vector<int64_t>{3, 5, 3, 8, 8}));
  // An item depends on its number and draws alone.
  SampleRandom again(torch::tensor({int64_t{2}}, torch::kLong));
  const auto alone =
      sampling.sample(std::vector<int64_t>{57}, again).to(torch::kInt);
  EXPECT_LE(
      (alone[0] - trajectories[1].to(torch::kInt)).abs().max().item<int>(), 1);
  const auto files =
      sampling.render(torch::zeros({200, 5, 3, 8, 8}, torch::kByte));
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0].name, "images/step{step}_cfg1.0{weights}.png");
  EXPECT_EQ(files[3].name, "images/step{step}_cfg2.25{weights}.gif");
  const data::ImageSize size = data::size_of_image(files[0].bytes);
  EXPECT_EQ(size.width, 100);
  EXPECT_EQ(size.height, 100);
  EXPECT_TRUE(files[1].bytes.starts_with("GIF89a"));
}

// A signal may save between two batches.
TEST(DitRecipe, SamplesWithAnAverageAndKeepsTheWeights) {
  testing::BuiltTask<recipes::DitRecipe> built(
      testing::with_flags(kSmallDit, {"--sample_steps=2"}));
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  engine::Learner learner(*built.task, world,
                          {.optimization = built.line.config().optimization});
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : learner.model().parameters()) parameter.add_(0.3);
  }
  const auto own = learner.model().parameters()[2].clone();
  int64_t num_looks = 0;
  const auto look = [&](int64_t, int64_t) {
    EXPECT_TRUE(torch::equal(learner.model().parameters()[2], own));
    ++num_looks;
    return true;
  };
  const auto sampled = [&](const Ema* average) {
    return *engine::sample_items(
        built.as<Sampling>(), learner, world,
        {.num_items = 4, .batch_size = 2, .average = average}, look);
  };
  const auto average = sampled(&learner.averages().at(0));
  // The average is the model as it begins: no velocity.
  EXPECT_TRUE(torch::equal(average.select(1, 0), average.select(1, -1)));
  EXPECT_FALSE(torch::equal(average, sampled(nullptr)));
  EXPECT_EQ(num_looks, 4);
}

TEST(DitFlow, TakesAtMostTheAskedFrames) {
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(dit::frame_steps({.count = 1, .max_frames = 26}), (Steps{0, 1}));
  EXPECT_EQ(dit::frame_steps({.count = 4, .max_frames = 3}), (Steps{0, 2, 4}));
  EXPECT_EQ(dit::frame_steps({.count = 5, .max_frames = 3}), (Steps{0, 3, 5}));
  EXPECT_EQ(dit::frame_steps({.count = 50, .max_frames = 26}).size(), 26U);
}

TEST(DitGrid, PutsImagesRowByRow) {
  const auto trajectories =
      torch::arange(6, torch::kByte).view({6, 1, 1, 1, 1}) * 10;
  const recipes::Grid grid = recipes::make_grid(trajectories, {.columns = 3});
  ASSERT_EQ(grid.frames.sizes(), (std::vector<int64_t>{1, 6, 9, 3}));
  EXPECT_EQ(grid.frames[0][4][7][0].item<int>(), 50);
  EXPECT_EQ(grid.frames[0][1][4][2].item<int>(), 10);
  EXPECT_EQ(grid.frames[0][0][0][0].item<int>(), 255);
}

TEST(DitGrid, TheFileNamesItsClasses) {
  const recipes::NamedTrajectories named{
      .name = "images/step1",
      .trajectories = torch::arange(8, torch::kByte).view({8, 1, 1, 1, 1}) * 10,
      .class_names = {"cat", "dog", "cow"}};
  const auto files = recipes::image_files(
      named, {.classes = {1, 3}, .copies = 4}, /*num_classes=*/4);
  ASSERT_EQ(files.size(), 1U);
  const auto grid = formats::read_image_grid(files[0].bytes);
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->grid.labels, (std::vector<std::string>{"dog", "class 3"}));
  ASSERT_EQ(grid->images.size(), 8U);
  EXPECT_EQ(grid->images[5].pixels, (std::vector<uint8_t>{50, 50, 50}));
}

TEST(DitData, OpensCifar10WithItsTestBatch) {
  const TempDir folder;
  folder.write("data_batch_1.bin", testing::cifar10_binary(0, 30));
  folder.write("test_batch.bin", testing::cifar10_binary(0, 5));
  const images::ImageSets sets =
      images::open_image_sets(folder.path().string(), 32);
  EXPECT_EQ(sets.train->size(), 30);
  EXPECT_EQ(sets.validation->size(), 5);
  EXPECT_EQ(sets.num_classes, 10);
  EXPECT_EQ(sets.class_names.at(9), "truck");
  EXPECT_THROW(images::open_image_sets(folder.path().string(), 16),
               ConfigError);
}

TEST(DitData, HoldsEvery20thImageOfAFolderBack) {
  const TempDir folder;
  for (const char* name : {"cat", "dog"}) {
    std::filesystem::create_directory(folder.path() / name);
    for (int i = 0; i < 20; ++i) {
      data::write_png(folder.path() / name / (std::to_string(i) + ".png"),
                      data::make_image(9, 7, 3));
    }
  }
  const images::ImageSets sets =
      images::open_image_sets(folder.path().string(), 8);
  EXPECT_EQ(sets.num_classes, 2);
  EXPECT_EQ(sets.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(sets.train->size(), 38);
  EXPECT_EQ(sets.validation->size(), 2);
  EXPECT_EQ(sets.train->get(0, 0)[0].sizes(), (std::vector<int64_t>{3, 8, 8}));
}

TEST(DitData, FoldersTrainAndValAreWhatTheyAreCalled) {
  const TempDir folder;
  const auto write = [&](const std::string& place, int count) {
    std::filesystem::create_directories(folder.path() / place);
    for (int i = 0; i < count; ++i) {
      data::write_png(folder.path() / place / (std::to_string(i) + ".png"),
                      data::make_image(9, 7, 3));
    }
  };
  for (const char* name : {"cat", "dog"}) {
    write("train/" + std::string(name), 20);
    write("val/" + std::string(name), 3);
  }
  const images::ImageSets sets =
      images::open_image_sets(folder.path().string(), 8);
  EXPECT_EQ(sets.num_classes, 2);
  EXPECT_EQ(sets.train->size(), 40);
  EXPECT_EQ(sets.validation->size(), 6);
  write("val/fish", 1);
  EXPECT_THROW(images::open_image_sets(folder.path().string(), 8), ConfigError);
}

TEST(DitData, SaysWhatIsUsableWhenAPathIsNot) {
  const TempDir empty;
  for (const std::string& path :
       {empty.path().string(), (empty.path() / "absent").string(),
        std::string("builtin:circles")}) {
    try {
      images::open_image_sets(path, 32);
      ADD_FAILURE() << path;
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("--data_path " + path), std::string::npos) << text;
      EXPECT_NE(text.find("builtin:shapes"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace lockstep
