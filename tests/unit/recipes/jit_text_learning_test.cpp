// The recipe jit learns eight answers by heart and samples them letter by
// letter.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "lockstep/recipes/jit/text_recipe.h"
#include "lockstep/tensor/seed.h"
#include "lockstep/train/command_line.h"
#include "lockstep/train/learner.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// All reach into the last row of patches: only patches with a token are
// learned.
const std::vector<std::pair<std::string, std::string>> kPairs = {
    {"What does the cat do?", "The cat sleeps under the old tree all day."},
    {"Where is Anna?", "Anna waits for Ben at the market, as always."},
    {"Who sings?", "Leo and Ida sing by the river when it rains."},
    {"2+2", "It is four, and has been so for a long time."},
    {"Name a colour.", "Red, as the apple in the kitchen of Emma."},
    {"Is it late?", "No, it is noon and the sun stands very high."},
    {"What was lost?",
     "Emma lost the small key in the snow, and Ben found it."},
    {"Who came?", "Nobody came, but the owl was there all night."}};

std::string file_of_pairs() {
  Json items = Json::array();
  for (const auto& [prompt, answer] : kPairs) {
    items.push_back({{"prompt", prompt}, {"answer", answer}});
  }
  return items.dump();
}

Batch batch_of(const Dataset& data, int64_t epoch) {
  Batch batch;
  std::vector<Sample> samples;
  std::vector<int64_t> seeds;
  for (int64_t i = 0; i < data.size(); ++i) {
    const uint64_t seed = sample_seed(0, epoch, i);
    seeds.push_back(static_cast<int64_t>(seed));
    samples.push_back(data.get(i, seed));
    batch.indices.push_back(i);
  }
  batch.tensors = data.collate(samples);
  batch.seeds = torch::tensor(seeds, torch::kLong);
  return batch;
}

constexpr int64_t kSteps = 3'000;

// Rises for a moment, then falls to 0: letters lie 1/255 apart.
double lr_at(int64_t step) {
  const double done = static_cast<double>(step) / kSteps;
  const double warm = std::min(1.0, static_cast<double>(step + 1) / 50);
  return 2e-3 * warm * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

TEST(JitTextLearning, SaysByHeartWhatItLearned) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(1);
  const testing::TempDir folder;
  JitShared shared{.model = "JiT-B/4",
                   .image_size = 8,
                   .width = 96,
                   .depth = 2,
                   .num_heads = 4};
  JitTextRecipe recipe(shared);
  CommandLine line(Command::kTrain, recipe);
  line.parse({"--data_path=" + folder.write("pairs.json", file_of_pairs()),
              "--enable_condition", "--weight_decay=0", "--beta2=0.99"},
             {});
  const DataSets data = recipe.open_data(line.config());
  ASSERT_EQ(data.train->size(), std::ssize(kPairs));
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  Learner learner(recipe, world, {.optimization = line.config().optimization});
  for (int64_t step = 0; step < kSteps; ++step) {
    learner.forward(batch_of(*data.train, step), Learner::Part::kLast, 8);
    learner.backward();
    learner.update(lr_at(step), 8);
  }
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> items = {0, 1, 2, 3, 4, 5, 6, 7};
  SampleRandom random(torch::tensor(items, torch::kLong));
  const auto files = recipe.render(recipe.sample(items, random));
  const Json results = Json::parse(files.back().bytes);
  for (size_t i = 0; i < kPairs.size(); ++i) {
    EXPECT_EQ(results[i]["prompt"], kPairs[i].first);
    EXPECT_EQ(results[i]["generated_text"], kPairs[i].second);
  }
}

}  // namespace
}  // namespace lockstep
