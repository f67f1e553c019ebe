// The commands of the documents do what is written there.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

bool starts_with_any(const std::string& line,
                     const std::vector<std::string>& beginnings) {
  for (const std::string& beginning : beginnings) {
    if (line.starts_with(beginning)) return true;
  }
  return false;
}

// Lines of code blocks that start one of our programs on a recipe that exists.
std::vector<std::string> commands_of(const std::string& document) {
  std::ifstream file(std::string(SOURCE_FOLDER) + "/" + document);
  std::vector<std::string> commands;
  bool is_code = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) is_code = !is_code;
    if (!is_code || !starts_with_any(line, {"lockstep ", "06_own_recipe "})) {
      continue;
    }
    const bool has_recipe = line.find("tiny") != std::string::npos ||
                            line.find("06_own_recipe") != std::string::npos;
    if (has_recipe) commands.push_back(line);
  }
  return commands;
}

void expect_success(const std::string& command, const std::string& folder) {
  const auto result = testing::run(
      {"bash", "-c", "PATH=" PROGRAMS_FOLDER ":$PATH; " + command},
      {.environment = {{"CUDA_VISIBLE_DEVICES", ""}, {"OMP_NUM_THREADS", "1"}},
       .folder = folder,
       .ignored_signals = {}});
  EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.err;
}

class Documents : public ::testing::TestWithParam<const char*> {};

// One after the other in one folder, as a reader would type them.
TEST_P(Documents, CommandsWorkInTheirOrder) {
  const testing::TempDir folder;
  const auto commands = commands_of(GetParam());
  EXPECT_GE(commands.size(), 2u);
  for (const std::string& command : commands) {
    expect_success(command, folder.path().string());
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllCommands, Documents,
    ::testing::Values("README.md", "docs/tutorial/first-training.md",
                      "docs/tutorial/adding-a-recipe.md",
                      "docs/how-to/training.md", "docs/how-to/checkpoints.md",
                      "docs/how-to/records.md",
                      "docs/explanation/reproducibility.md"));

// Those are alternatives to each other: a folder for each.
TEST(GuideCommands, WorkWithTheRecipesThatExist) {
  for (const char* document : {"docs/how-to/from-the-guides.md",
                               "docs/how-to/from-the-guides.zh-CN.md"}) {
    const auto commands = commands_of(document);
    EXPECT_GE(commands.size(), 2u) << document;
    for (const std::string& command : commands) {
      const testing::TempDir folder;
      expect_success(command, folder.path().string());
    }
  }
}

}  // namespace
}  // namespace lockstep
