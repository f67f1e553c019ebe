// Every command that docs/from-the-guides.md gives for a recipe works.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "distributed/training.h"
#include "support/cifar10_files.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

// Ours, of the code blocks below "## RECIPE". "[flags]" stands for any.
Words commands_of(const std::string& document, const std::string& recipe) {
  static const std::regex ours(
      R"((CUDA_VISIBLE_DEVICES=\S+ )?(lockstep|bash scripts/).*[^\]])");
  std::ifstream file(SOURCE_FOLDER "/docs/" + document);
  Words commands;
  bool is_section = false;
  bool is_code = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_section = line == "## " + recipe;
    if (line.starts_with("```")) is_code = !is_code;
    if (is_section && is_code && std::regex_match(line, ours)) {
      commands.push_back(line);
    }
  }
  return commands;
}

// On the CPU, and at any port: this machine may be in use.
std::string runnable_here(const std::string& command) {
  const std::string without_gpus =
      std::regex_replace(command, std::regex("CUDA_VISIBLE_DEVICES=[0-9,]+"),
                         "CUDA_VISIBLE_DEVICES=");
  return std::regex_replace(without_gpus, std::regex(" --master_port=[0-9]+"),
                            "");
}

// The outputs of the commands, run in this folder with flags that make the
// model small.
std::map<std::string, std::string> run_commands(const Words& commands,
                                                const TempDir& temp,
                                                const std::string& flags) {
  std::map<std::string, std::string> outputs;
  fs::create_directory_symlink(SOURCE_FOLDER "/scripts",
                               temp.path() / "scripts");
  ProcessOptions options = process_options({});
  options.folder = temp.path().string();
  options.timeout_seconds = 180;  // Eight processes on two cores.
  options.environment["LOCKSTEP"] = LOCKSTEP_PROGRAM;
  for (const std::string& command : commands) {
    const std::string line = "PATH=" PROGRAMS_FOLDER ":$PATH; " +
                             runnable_here(command) +
                             " --fast_dev_run --dim=16 --depth=1 --heads=2"
                             " --sample_steps=1 " +
                             flags;
    const auto result = run(Words{"bash", "-c", line}, options);
    EXPECT_EQ(result.exit_code, 0)
        << line << "\n"
        << (result.timed_out ? "timed out\n" : "") << result.err << result.out;
    outputs[command] = result.out;
  }
  return outputs;
}

TEST(Guides, EveryCommandOfDitWorks) {
  const Words commands = commands_of("from-the-guides.md", "dit");
  EXPECT_EQ(commands, commands_of("from-the-guides.zh-CN.md", "dit"));
  EXPECT_GE(commands.size(), 22U);
  const TempDir temp;
  fs::create_directories(temp.path() / "data" / "cifar-10-batches-py");
  // A batch of 128 for 8 processes.
  temp.write("data/cifar-10-batches-py/data_batch_1", cifar10_python(0, 1024));
  temp.write("data/cifar-10-batches-py/test_batch", cifar10_python(0, 16));
  const auto outputs = run_commands(commands, temp, "--patch=8");
  // As the guide states them.
  const std::string& four = outputs.at("lockstep train dit --nproc 4");
  expect_in(four, "effective batch 512 = 128 per process");
  expect_in(four, "learning rate 0.0001");
  expect_in(
      outputs.at(
          "lockstep train dit --nproc 4 --num_register_tokens 8 --batch_size "
          "64 --lr 2e-4"),
      "learning rate 0.0002");
}

TEST(Guides, EveryCommandOfJitWorks) {
  const Words commands = commands_of("from-the-guides.md", "jit");
  EXPECT_EQ(commands, commands_of("from-the-guides.zh-CN.md", "jit"));
  EXPECT_GE(commands.size(), 12U);
  const TempDir temp;
  fs::create_directories(temp.path() / "data" / "train");
  std::string texts;
  for (int i = 0; i < 300; ++i) {
    texts += "text number " + std::to_string(i) + "\n";
  }
  temp.write("data/train/texts.txt", texts);
  const auto outputs = run_commands(commands, temp, "--num_texts=1");
  // As the guide states them.
  const std::string& two = outputs.at("bash scripts/jit/train_multi_gpu.sh 2");
  expect_in(two, "effective batch 128 = 64 per process");
  expect_in(two, "learning rate 0.0001");
  expect_in(outputs.at("bash scripts/jit/train.sh"), "learning rate 5e-05");
  expect_in(outputs.at("bash scripts/jit/train_multi_gpu.sh 4"),
            "effective batch 256 = 64 per process");
}

}  // namespace
}  // namespace lockstep::testing
