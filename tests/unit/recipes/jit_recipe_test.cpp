#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/strings.h"
#include "lockstep/cli/command_line.h"
#include "lockstep/config/render.h"
#include "lockstep/error.h"
#include "lockstep/recipes/jit/jit.h"
#include "support/cifar10_files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

std::string kind_of(const std::string& path) {
  recipes::JitRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--data_path=" + path}, {});
  return line.options().value_text("data_kind");
}

TEST(JitRecipe, KnowsTextAndImagesByTheirPath) {
  const TempDir temp;
  EXPECT_EQ(kind_of("builtin:text"), "text");
  EXPECT_EQ(kind_of("builtin:shapes"), "images");
  std::filesystem::create_directories(temp.path() / "texts");
  EXPECT_EQ(kind_of(temp.write("texts/a.jsonl", "\"x\"\n")), "text");
  EXPECT_EQ(kind_of((temp.path() / "texts").string()), "text");
}

TEST(JitRecipe, AListOfClassesBesideImagesIsNoText) {
  const TempDir temp;
  std::filesystem::create_directories(temp.path() / "classes" / "cat");
  temp.write("classes/names.txt", "cat\n");
  EXPECT_EQ(kind_of((temp.path() / "classes").string()), "images");
  std::filesystem::create_directories(temp.path() / "cifar");
  temp.write("cifar/data_batch_1.bin", testing::cifar10_binary(0, 2));
  temp.write("cifar/batches.meta.txt", "airplane\n");
  EXPECT_EQ(kind_of((temp.path() / "cifar").string()), "images");
}

TEST(JitRecipe, KindsHaveDefaultsOfTheirOwn) {
  const auto config_of = [](std::vector<std::string> flags) {
    recipes::JitRecipe recipe;
    cli::CommandLine line(Purpose::kTrain, recipe);
    line.parse(flags, {});
    return line.config().optimization;
  };
  const auto text = config_of({"--data_path=builtin:text"});
  EXPECT_EQ(text.lr_schedule, "cosine");
  EXPECT_EQ(text.weight_decay, 0.01);
  EXPECT_EQ(text.max_grad_norm, 1);
  EXPECT_TRUE(text.ema_decay.empty());
  const auto images = config_of({"--data_path=builtin:shapes"});
  EXPECT_EQ(images.lr_schedule, "constant");
  EXPECT_EQ(images.weight_decay, 0);
  EXPECT_EQ(images.max_grad_norm, 0);
  EXPECT_EQ(images.ema_decay.size(), 2U);
  EXPECT_EQ(config_of({"--data_path=builtin:shapes", "--weight_decay=0.3"})
                .weight_decay,
            0.3);
}

TEST(JitRecipe, WarmsUpForFiveEpochsUnlessStepsAreGiven) {
  for (const std::string data : {"builtin:text", "builtin:shapes"}) {
    for (const bool gives_steps : {false, true}) {
      recipes::JitRecipe recipe;
      cli::CommandLine line(Purpose::kTrain, recipe);
      std::vector<std::string> flags = {"--data_path=" + data};
      if (gives_steps) flags.push_back("--warmup_steps=3");
      line.parse(flags, {});
      const OptimizationConfig& optimization = line.config().optimization;
      EXPECT_EQ(optimization.warmup_epochs, gives_steps ? 0 : 5) << data;
      EXPECT_EQ(optimization.warmup_steps, gives_steps ? 3 : 0) << data;
    }
  }
}

// Both kinds of data, where they have defaults of their own.
TEST(JitRecipe, HelpShowsTheDefaultsThatAct) {
  recipes::JitRecipe described;
  const cli::CommandLine line(Purpose::kTrain, described);
  const std::string document = config::to_markdown(line.options());
  const auto default_of = [&](const std::string& flag) {
    const size_t row = document.find("| `--" + flag + "`");
    const std::string text =
        document.substr(row, document.find('\n', row) - row);
    return base::split(text, '|').at(4);
  };
  EXPECT_EQ(default_of("warmup_epochs"), " `5.0` ");
  for (const auto& [data, position] :
       {std::pair("builtin:text", 0), std::pair("builtin:shapes", 1)}) {
    recipes::JitRecipe recipe;
    cli::CommandLine parsed(Purpose::kTrain, recipe);
    parsed.parse({std::string("--data_path=") + data}, {});
    for (const std::string name :
         {"lr_schedule", "beta2", "weight_decay", "max_grad_norm"}) {
      const auto shown = base::split(default_of(name), ';');
      ASSERT_EQ(shown.size(), 2U) << name;
      const auto words = base::split(base::trim(shown[position]), ' ');
      const std::string acts = parsed.options().value_text(name);
      EXPECT_EQ(base::parse_number(words.back()), base::parse_number(acts))
          << name;
      if (!base::parse_number(acts)) {
        EXPECT_EQ(words.back(), acts) << name;
      }
    }
  }
}

TEST(JitRecipe, NamesTheDataThatAreNot) {
  recipes::JitRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--data_path=builtin:nothing"}, {});
  EXPECT_THROW(recipe.build(line.settings(), Purpose::kTrain), ConfigError);
}

}  // namespace
}  // namespace lockstep
