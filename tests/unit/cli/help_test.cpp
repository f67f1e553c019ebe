// Help texts against the settings that they describe.
#include "lockstep/cli/help.h"

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/cli/command_line.h"
#include "lockstep/registry.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using testing::contains;
using testing::expect_in;
using testing::expect_not_in;

constexpr size_t kIndent = 34;  // Where the right side of a row begins.

std::string help(Purpose purpose, std::string_view recipe_name,
                 const std::string& flag) {
  const auto recipe = make_recipe(recipe_name);
  cli::CommandLine line(purpose, *recipe,
                        {.launching = {{"--nproc N", "processes"}}});
  return line.parse({flag}, {}).value();
}

// The help of one setting, in one line.
std::string row_of(const std::string& help, const Setting& setting) {
  const bool is_bool = setting.binding.kind == ScalarKind::kBool;
  const std::string left =
      "\n  --" + std::string(is_bool ? "[no_]" : "") + setting.name + " ";
  const std::string text =
      base::replace_all(help, "\n" + std::string(kIndent, ' '), " ");
  const size_t begin = text.find(left);
  if (begin == std::string::npos) return "";
  return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

class HelpOfRecipe : public ::testing::TestWithParam<RecipeEntry> {};

// What the run's config has is what help says.
TEST_P(HelpOfRecipe, EveryDefaultShownIsTheOneThatActs) {
  const std::string text = help(Purpose::kTrain, GetParam().name, "--help_all");
  const auto recipe = GetParam().make();
  cli::CommandLine line(Purpose::kTrain, *recipe);
  ASSERT_TRUE(line.parse({"--print_config"}, {}).has_value());
  for (const Setting& setting : line.options().settings()) {
    const std::string row = row_of(text, setting);
    std::string acting = line.options().value_text(setting.name);
    const bool is_unset = acting == "null" || acting == "[]";
    const std::string& words = setting.details.shown_default;
    if (is_unset) acting = "none";
    if ((is_unset || acting == "\"\"") && !words.empty()) acting = words;
    const std::string shown = "(default: " + acting;
    const bool is_shown = contains(row, shown + ")") ||
                          contains(row, shown + ";") ||
                          contains(row, "(default: auto;");
    EXPECT_TRUE(is_shown) << setting.name << " is " << acting << "\n" << row;
  }
}

TEST_P(HelpOfRecipe, BeginsWithTheLauncherThenItsOwnFlags) {
  const std::string text = help(Purpose::kTrain, GetParam().name, "--help");
  EXPECT_TRUE(text.starts_with("usage: lockstep train " +
                               std::string(GetParam().name) +
                               " [--nproc N] [flags]\n"))
      << text;
  const auto recipe = GetParam().make();
  const cli::CommandLine line(Purpose::kTrain, *recipe);
  const auto own = cli::own_groups(line.options());
  ASSERT_FALSE(own.empty());
  const size_t launching = text.find("\nLaunching:\n  --nproc N");
  const size_t first = text.find("\n" + own.front().title + ":\n");
  const size_t common = text.find("\nRun:\n");
  const size_t general = text.find("\nGeneral:\n");
  EXPECT_LT(launching, first) << text;
  EXPECT_LT(first, common);
  EXPECT_LT(common, general);
  ASSERT_NE(general, std::string::npos);
}

TEST_P(HelpOfRecipe, TheShortOneLeavesOutWhatFewNeed) {
  const std::string text = help(Purpose::kTrain, GetParam().name, "--help");
  const std::string all = help(Purpose::kTrain, GetParam().name, "--help-all");
  expect_in(text, "  --batch_size INT");
  expect_not_in(text, "--early_stopping_min_delta");
  expect_in(all, "  --early_stopping_min_delta");
  expect_in(text, "--help_all shows");
  const auto recipe = GetParam().make();
  const cli::CommandLine line(Purpose::kTrain, *recipe);
  for (const Setting& setting : line.options().settings()) {
    EXPECT_NE(row_of(all, setting), "") << setting.name;
  }
  for (const std::string& row : base::split(all, '\n')) {
    EXPECT_LE(row.size(), 100u) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HelpOfRecipe, ::testing::ValuesIn(all_recipes()),
                         [](const auto& instance) {
                           return std::string(instance.param.name);
                         });

TEST(Help, FitsOnAPage) {
  const std::string text = help(Purpose::kTrain, "tiny", "--help");
  EXPECT_LT(base::split(text, '\n').size(), 90u) << text;
}

TEST(Help, OnlyRecipesWithScoresHaveTheFlagOfScores) {
  for (const char* flag : {"--help", "--help_all"}) {
    expect_in(help(Purpose::kEval, "dit", flag), "--[no_]fid ");
    expect_not_in(help(Purpose::kEval, "tiny", flag), "--[no_]fid ");
  }
}

TEST(Help, EvaluationShowsNoOptimizer) {
  const std::string text = help(Purpose::kEval, "tiny", "--help");
  expect_in(text, "--checkpoint TEXT");
  expect_not_in(text, "--optimizer");
}

TEST(Help, AProgramOfItsOwnNamesTheLauncher) {
  const auto recipe = make_recipe("tiny");
  cli::CommandLine line(Purpose::kTrain, *recipe, {.program = "ring"});
  const std::string text = line.parse({"--help"}, {}).value();
  expect_in(text, "lockstep run --nproc N ring ...");
  expect_not_in(text, "Launching:");
}

}  // namespace
}  // namespace lockstep
