// The recipe jit learns texts, alike on any number of processes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "distributed/training.h"
#include "lockstep/base/files.h"

namespace lockstep::testing {
namespace {

struct Pair {
  const char* prompt;
  const char* answer;
};

// Of one patch of tokens and of many.
constexpr Pair kPairs[] = {
    {"What is the colour of the sky?",
     "It is blue, and grey when it rains on us."},
    {"Who wrote this small letter?", "Nobody."},
    {"How many legs has a spider?", "eight"},
    {"Where do the fishes live?", "In the sea."},
    {"What do bees make all day?", "Honey and wax, and more bees."},
    {"Which is the largest planet?", "Jupiter is."},
    {"When does the sun go down?", "At night."},
    {"Why do we sleep at all?", "To rest."}};

std::string pairs_file() {
  nlohmann::json items = nlohmann::json::array();
  for (const Pair& pair : kPairs) {
    items.push_back({{"prompt", pair.prompt}, {"answer", pair.answer}});
  }
  return items.dump();
}

TEST(JitTextTraining, EightAnswersOfAnyLengthAreLearnedByHeart) {
  const TempDir temp;
  Training training{
      .recipe = "jit",
      .folder = temp.path() / "run",
      .flags = {"--data_path", temp.write("eight.json", pairs_file()),
                "--enable_condition", "--model=JiT-B/4", "--img_size=16",
                "--dim=96", "--depth=2", "--heads=4", "--batch_size=8",
                "--lr=2e-3", "--beta2=0.99", "--weight_decay=0",
                "--warmup_steps=50", "--n_steps=3000", "--val_every_epochs=0",
                "--save_every_epochs=0", "--sample_every=3000",
                "--no_tensorboard"}};
  ProcessOptions options = process_options(training);
  options.timeout_seconds = 240;
  const auto result = run(command_of(training), options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto made = nlohmann::json::parse(
      read_file(temp.path() / "run" / "texts" / "step3000" / "results.json"));
  ASSERT_EQ(made.size(), std::size(kPairs));
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(made[i]["prompt"], kPairs[i].prompt);
    EXPECT_EQ(made[i]["generated_text"], kPairs[i].answer);
  }
}

TEST(JitTextTraining, OneAndTwoProcessesHaveTheSameLosses) {
  const TempDir temp;
  for (const int world : {1, 2}) {
    run_well(
        {.recipe = "jit",
         .world = world,
         .folder = temp.path() / std::to_string(world),
         .flags = {"--data_path=builtin:text", "--model=JiT-B/4",
                   "--img_size=16", "--dim=32", "--depth=2", "--heads=2",
                   "--lr=1e-3", "--warmup_steps=2", "--global_batch_size=16",
                   "--n_steps=20", "--log_every=1", "--limit_val_batches=1"}});
  }
  const auto alone = metric(temp.path() / "1", "train/loss");
  ASSERT_EQ(alone.size(), 20U);
  expect_close(metric(temp.path() / "2", "train/loss"), alone, 1e-5);
}

}  // namespace
}  // namespace lockstep::testing
