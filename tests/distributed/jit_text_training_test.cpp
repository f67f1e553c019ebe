// The recipe jit learns texts, alike on any number of processes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"

namespace lockstep::testing {
namespace {

struct Pair {
  const char* prompt;
  const char* answer;
};

// With one patch of tokens and with many.
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
  const auto result = run(command_of(training), options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto made = nlohmann::json::parse(base::read_file(
      temp.path() / "run" / "texts" / "step3000" / "results.json"));
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

const Words kSmall = {"--data_path=builtin:text",
                      "--model=JiT-B/4",
                      "--img_size=16",
                      "--dim=32",
                      "--depth=2",
                      "--heads=2",
                      "--global_batch_size=16",
                      "--warmup_steps=0",
                      "--limit_val_batches=1"};

constexpr const char* kConditionWeights[] = {
    "cond_pos_embed_h", "cond_pos_embed_w", "condition_embed.weight"};

// What nothing depends on has no gradient, so that neither weight decay nor the
// optimizer changes it.
TEST(JitTextTraining, WithoutConditionItsWeightsStayAsInitialised) {
  const TempDir temp;
  const auto best = [&](const std::string& name) {
    return load_checkpoint(temp.path() / name / "best_model.pth");
  };
  run_well({.recipe = "jit",
            .folder = temp.path() / "initial",
            .flags = kSmall + Words{"--lr=0", "--n_steps=1"}});
  const Tree initial = best("initial");
  for (const int world : {1, 2}) {
    SCOPED_TRACE(world);
    const std::string name = std::to_string(world);
    run_well({.recipe = "jit",
              .world = world,
              .folder = temp.path() / name,
              .flags = kSmall + Words{"--lr=1e-2", "--weight_decay=0.5",
                                      "--n_steps=4"}});
    const Tree trained = best(name);
    for (const char* weight_name : kConditionWeights) {
      EXPECT_TRUE(
          weight(trained, weight_name).equal(weight(initial, weight_name)))
          << weight_name;
    }
    EXPECT_FALSE(weight(trained, "patch_embed.weight")
                     .equal(weight(initial, "patch_embed.weight")));
    // As Python's optimizer over all parameters, of which these had no
    // gradient.
    const TreeView optimizer = TreeView(trained).at("optimizer_state_dict");
    const size_t num_parameters =
        optimizer.at("param_groups").at(0).at("params").as_list().size();
    EXPECT_EQ(num_parameters,
              TreeView(trained).at("model_state_dict").as_dict().size() - 1);
    EXPECT_EQ(optimizer.at("state").as_dict().size(), num_parameters - 3);
  }
}

TEST(JitTextTraining, ARunGoesOnWithAndWithoutCondition) {
  const TempDir temp;
  Training training{.recipe = "jit", .world = 2, .folder = temp.path() / "run"};
  int steps = 2;
  training.flags = kSmall + Words{"--lr=1e-3", "--n_steps=2"};
  run_well(training);
  for (const char* condition :
       {"--enable_condition", "--no_enable_condition"}) {
    SCOPED_TRACE(condition);
    steps += 2;
    training.flags = {"--resume=latest", condition,
                      "--n_steps=" + std::to_string(steps)};
    run_well(training);
  }
}

}  // namespace
}  // namespace lockstep::testing
