// The commands of the documents do what is written there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

// Lines of code blocks that the expression matches. Chinese pages have the same
// commands: tools/translated_pages.py.
std::vector<std::string> lines_of(const std::string& document,
                                  const std::string& expression) {
  std::ifstream file(std::string(SOURCE_FOLDER) + "/" + document);
  std::vector<std::string> lines;
  bool is_code = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) is_code = !is_code;
    if (is_code && std::regex_search(line, std::regex(expression))) {
      lines.push_back(line);
    }
  }
  return lines;
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
  const auto commands =
      lines_of(GetParam(), "^(lockstep .*(tiny|06_own_recipe)|06_own_recipe )");
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
                      "docs/how-to/from-pytorch.md", "docs/how-to/profiling.md",
                      "docs/how-to/records.md",
                      "docs/explanation/reproducibility.md"));

// Minutes of training become a few steps; the samples and scores stay.
std::string shortened(std::string command) {
  for (const auto& [long_one, short_one] :
       std::vector<std::pair<const char*, const char*>>{
           {"--n_steps [0-9]+", "--n_steps 4"},
           {"--epochs [0-9]+", "--epochs 1 --limit_train_batches 2"},
           {"--(val|sample)_(every|interval) [0-9]+", "--$1_$2 2"},
           {"--num_fid_samples [0-9]+", "--num_fid_samples 16"},
           {"--sample_steps [0-9]+", "--sample_steps 2"}}) {
    command = std::regex_replace(command, std::regex(long_one), short_one);
  }
  if (command.starts_with("lockstep train"))
    command += " --limit_val_batches 1";
  return command;
}

class LongCommands : public ::testing::TestWithParam<const char*> {};

TEST_P(LongCommands, WorkWhenShortened) {
  // With generated data or a checkpoint; others need the reader's files.
  const auto commands =
      lines_of(GetParam(),
               "^lockstep [a-z]+ (dit|jit|scribble|protein|atlas) "
               ".*(builtin:|--checkpoint [^ ]+( |$)(?!--workspace)|--resume )");
  EXPECT_GE(commands.size(), 2u);
  const testing::TempDir folder;
  for (const std::string& command : commands) {
    expect_success(shortened(command), folder.path().string());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, LongCommands,
    ::testing::Values("docs/tutorial/first-training.md",
                      "docs/how-to/images-and-text.md",
                      "docs/how-to/segmentation-and-proteins.md",
                      "docs/how-to/robot-actions.md"));

// Those are alternatives to each other: a folder for each.
TEST(GuideCommands, WorkWithTheRecipesThatExist) {
  const auto commands =
      lines_of("docs/how-to/from-the-guides.md", "^lockstep .*tiny");
  EXPECT_GE(commands.size(), 2u);
  for (const std::string& command : commands) {
    const testing::TempDir folder;
    expect_success(command, folder.path().string());
  }
}

// ./train, train.py and package.train stand for the reader's programs.
void write_programs(const testing::TempDir& folder) {
  const auto write = [&](const char* name, const char* text) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << text;
  };
  write("train", "#!/bin/sh\necho rank $RANK of $WORLD_SIZE\n");
  std::filesystem::permissions(folder.path() / "train",
                               std::filesystem::perms::owner_all);
  const char* script = "import os\nassert 'MASTER_PORT' in os.environ\n";
  write("train.py", script);
  write("package/train.py", script);
}

TEST(LaunchCommands, StartTheReadersPrograms) {
  for (const char* document :
       {"docs/how-to/launching.md", "docs/how-to/errors.md",
        "docs/how-to/from-pytorch.md"}) {
    const auto commands =
        lines_of(document, "^([A-Z_]+=[^ ]+ )*lockstep (run|train) ");
    EXPECT_GE(commands.size(), 2u) << document;
    for (const std::string& command : commands) {
      if (command.find("--init_from") != std::string::npos) continue;
      const testing::TempDir folder;
      write_programs(folder);
      expect_success(std::regex_replace(command, std::regex("RECIPE"), "tiny"),
                     folder.path().string());
    }
  }
}

}  // namespace
}  // namespace lockstep
