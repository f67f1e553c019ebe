#include "lockstep/cli/command_line.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/error.h"
#include "lockstep/recipes/atlas/atlas.h"
#include "lockstep/recipes/scribble/scribble.h"
#include "lockstep/recipes/tiny/tiny.h"
#include "support/temp_dir.h"
#include "unit/engine/flags.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::config_error;
using testing::contains;
using testing::TempDir;
using Words = std::vector<std::string>;

template <typename Made>
struct Parsed {
  explicit Parsed(const Words& flags) { line.parse(flags, {}); }
  const OptimizationConfig& optimization() const {
    return line.config().optimization;
  }

  Made recipe;
  cli::CommandLine line{Purpose::kTrain, recipe};
};

TEST(CommandLine, AGivenWarmUpReplacesTheRecipesInTheOtherUnit) {
  const Parsed<recipes::ScribbleRecipe> epochs({});
  EXPECT_EQ(epochs.optimization().warmup_epochs, 5);
  const Parsed<recipes::ScribbleRecipe> steps({"--warmup_steps=7"});
  EXPECT_EQ(steps.optimization().warmup_steps, 7);
  EXPECT_EQ(steps.optimization().warmup_epochs, 0);
  const Parsed<recipes::AtlasRecipe> atlas({"--warmup_epochs=2"});
  EXPECT_EQ(atlas.optimization().warmup_steps, 0);
  EXPECT_EQ(atlas.optimization().warmup_epochs, 2);
}

TEST(CommandLine, AWarmUpFlagReplacesAFilesInTheOtherUnit) {
  const TempDir folder;
  const std::string file =
      "--config=" + folder.write("a.yaml", "warmup_epochs: 2\n");
  const Parsed<recipes::TinyRecipe> from_file({file});
  EXPECT_EQ(from_file.optimization().warmup_epochs, 2);
  const Parsed<recipes::TinyRecipe> from_flag({file, "--warmup_steps=7"});
  EXPECT_EQ(from_flag.optimization().warmup_steps, 7);
  EXPECT_EQ(from_flag.optimization().warmup_epochs, 0);
  const std::string both = config_error([&] {
    const Parsed<recipes::TinyRecipe> parsed(
        {"--warmup_epochs=1", "--warmup_steps=7"});
  });
  EXPECT_TRUE(contains(both, "both given")) << both;
}

TEST(CommandLine, TheWarmUpFlagToChangeIsTheOneInUse) {
  EXPECT_STREQ(
      engine::warmup_flag(Parsed<recipes::ScribbleRecipe>({}).optimization()),
      "--warmup_epochs");
  EXPECT_STREQ(
      engine::warmup_flag(Parsed<recipes::TinyRecipe>({}).optimization()),
      "--warmup_steps");
}

// A run folder of tiny with a checkpoint that has its settings.
struct SavedRun {
  explicit SavedRun(const std::string& config) {
    temp.write("config.yaml", config);
    save(7, "lr: 0.125\nepochs: 9\n");
    save(5, "lr: 0.5\n");
  }

  void save(int64_t step, const std::string& settings) const {
    Tree tree;
    tree["global_step"] = step;
    tree["lockstep"]["recipe"] = "tiny";
    tree["lockstep"]["config"] = settings;
    tree["lockstep"]["state"]["step"] = step;
    save_checkpoint(path(step), tree);
  }

  fs::path path(int64_t step) const {
    return temp.path() / ("checkpoint_step_" + std::to_string(step) + ".pt");
  }

  Words resume() const {
    return {"--resume=latest", "--save_dir=" + temp.path().string()};
  }

  TempDir temp;
};

TEST(CommandLine, ADamagedConfigFileIsReplacedByTheNewestCheckpointsSettings) {
  for (const std::string& damaged :
       {std::string(), std::string("\0\0\0\0\0\0\0\0", 8),
        std::string("# recipe: tiny\nlr: [0.25\n"),
        std::string("# recipe: tiny\nlr: 0.2q\n"),
        std::string("# recipe: tiny\nl\x01r: 0.25\n"),
        std::string("# recipe: tiny\nlr: 0.25\nepo"),
        std::string("# recipe: tiny\nlr: 0.125\n"),  // Cut off.
        std::string("lr: 0.25\n")}) {
    SCOPED_TRACE(damaged);
    const SavedRun run(damaged);
    const Parsed<recipes::TinyRecipe> resumed(run.resume());
    EXPECT_EQ(resumed.optimization().lr, 0.125);
    EXPECT_EQ(resumed.line.config().epochs, 9);
    EXPECT_EQ(resumed.line.settings_source(), run.path(7).string());
    const std::string& note = resumed.line.settings_note();
    EXPECT_TRUE(contains(note, "config.yaml")) << note;
    EXPECT_TRUE(contains(note, run.path(7).string())) << note;
  }
}

TEST(CommandLine, AWholeConfigFileCountsMoreThanTheCheckpoints) {
  const SavedRun run("# recipe: tiny\nlr: 0.25\n");
  const Parsed<recipes::TinyRecipe> resumed(run.resume());
  EXPECT_EQ(resumed.optimization().lr, 0.25);
  EXPECT_EQ(resumed.line.settings_note(), "");
}

TEST(CommandLine, AMissingConfigFileIsReplacedTooAndFlagsStillWin) {
  const SavedRun run("");
  fs::remove(run.temp.path() / "config.yaml");
  // The newest is damaged: the one before has settings as well.
  run.temp.write("checkpoint_step_7.pt", "cut off");
  Words flags = run.resume();
  flags.push_back("--epochs=3");
  const Parsed<recipes::TinyRecipe> resumed(flags);
  EXPECT_EQ(resumed.optimization().lr, 0.5);
  EXPECT_EQ(resumed.line.config().epochs, 3);
  EXPECT_EQ(resumed.line.settings_source(), run.path(5).string());
}

TEST(CommandLine, WithoutASoundCheckpointTheDamageIsTheError) {
  const TempDir folder;
  folder.write("config.yaml", "# recipe: tiny\nlr: [0.25\n");
  const std::string text = config_error([&] {
    const Parsed<recipes::TinyRecipe> parsed(
        {"--resume=latest", "--save_dir=" + folder.path().string()});
  });
  EXPECT_TRUE(contains(text, "config.yaml")) << text;
}

TEST(CommandLine, AProgramOfOneRecipeTakesItsNameBehindFlags) {
  recipes::TinyRecipe recipe;
  cli::CommandLine own(Purpose::kTrain, recipe, {.program = "ring"});
  EXPECT_EQ(own.parse({"--lr", "0.5", "tiny"}, {}), std::nullopt);
  EXPECT_EQ(own.config().optimization.lr, 0.5);
  recipes::TinyRecipe other;
  cli::CommandLine shared(Purpose::kTrain, other);
  EXPECT_TRUE(contains(config_error([&] { shared.parse({"tiny"}, {}); }),
                       "'tiny' belongs to no flag"));
}

TEST(CommandLine, TheUsageNamesTheProgram) {
  recipes::TinyRecipe recipe;
  cli::CommandLine shared(Purpose::kEval, recipe);
  EXPECT_TRUE(shared.parse({"--help"}, {})
                  ->starts_with("usage: lockstep eval tiny --checkpoint FILE "
                                "[--nproc N] [flags]\n"));
  recipes::TinyRecipe other;
  cli::CommandLine own(Purpose::kEval, other, {.program = "ring"});
  EXPECT_TRUE(
      own.parse({"--help"}, {})
          ->starts_with("usage: ring [train|eval|sample|prepare] [flags]\n"));
  const std::string text = config_error([&] { own.parse({"word"}, {}); });
  EXPECT_TRUE(contains(text, "ring eval --help")) << text;
}

TEST(CommandLine, AConfigFileOfAnotherRecipeIsRefused) {
  const SavedRun run("# recipe: dit\nlr: 0.25\n");
  const std::string text = config_error(
      [&] { const Parsed<recipes::TinyRecipe> parsed(run.resume()); });
  EXPECT_TRUE(contains(text, "is not of the recipe tiny")) << text;
}

}  // namespace
}  // namespace lockstep
