// Every command that docs/how-to/from-the-guides.md gives for a recipe works.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "distributed/training.h"
#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/datasets/proteins/cache_file.h"
#include "lockstep/datasets/proteins/generated.h"
#include "lockstep/datasets/voc/generated.h"
#include "support/cifar10_files.h"
#include "support/images.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

// Ours, of the code blocks below "## RECIPE". "[flags]" stands for any, also
// for none.
Words commands_of(const std::string& document, const std::string& recipe) {
  static const std::regex ours(R"(([A-Z_]+=\S+ )*(lockstep|bash scripts/).*)");
  std::ifstream file(SOURCE_FOLDER "/docs/how-to/" + document);
  Words commands;
  bool is_section = false;
  bool is_code = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_section = line == "## " + recipe;
    if (line.starts_with("```")) is_code = !is_code;
    if (is_section && is_code && std::regex_match(line, ours)) {
      commands.push_back(
          std::regex_replace(line, std::regex(R"( \[flags\])"), ""));
    }
  }
  return commands;
}

// On the CPU, and at any port: this machine may be in use.
std::string runnable_here(const std::string& command) {
  const std::string without_gpus =
      std::regex_replace(command, std::regex("CUDA_VISIBLE_DEVICES=[0-9,]+"),
                         "CUDA_VISIBLE_DEVICES=");
  const std::string at_any_port =
      std::regex_replace(without_gpus, std::regex(" --master_port=[0-9]+"), "");
  // In the foreground.
  return std::regex_replace(at_any_port, std::regex(" &$"), "");
}

// The outputs of the commands, run in this folder with flags that make the
// model small.
std::map<std::string, std::string> run_commands(
    const Words& commands, const TempDir& temp, const std::string& flags,
    const std::string& how = "--fast_dev_run") {
  std::map<std::string, std::string> outputs;
  const fs::path link = temp.path() / "scripts";
  if (!fs::exists(link)) {
    fs::create_directory_symlink(SOURCE_FOLDER "/scripts", link);
  }
  ProcessOptions options = process_options({});
  options.folder = temp.path().string();
  options.environment["LOCKSTEP"] = LOCKSTEP_PROGRAM;
  for (const std::string& command : commands) {
    const std::string line = "PATH=" PROGRAMS_FOLDER ":$PATH; " +
                             runnable_here(command) + " " + how + " " + flags;
    const auto result = run(Words{"bash", "-c", line}, options);
    EXPECT_EQ(result.exit_code, 0)
        << line << "\n"
        << (result.timed_out ? "timed out\n" : "") << result.err << result.out;
    outputs[command] = result.out;
  }
  return outputs;
}

const std::string kTinyModel = "--dim=16 --depth=1 --heads=2 --sample_steps=1 ";

TEST(Guides, EveryCommandOfDitWorks) {
  const Words commands = commands_of("from-the-guides.md", "dit");
  EXPECT_EQ(commands, commands_of("from-the-guides.zh-CN.md", "dit"));
  EXPECT_GE(commands.size(), 22U);
  const TempDir temp;
  fs::create_directories(temp.path() / "data" / "cifar-10-batches-py");
  // A batch of 128 for 8 processes.
  temp.write("data/cifar-10-batches-py/data_batch_1", cifar10_python(0, 1024));
  temp.write("data/cifar-10-batches-py/test_batch", cifar10_python(0, 16));
  const auto outputs = run_commands(commands, temp, kTinyModel + "--patch=8");
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
  const auto outputs =
      run_commands(commands, temp, kTinyModel + "--num_texts=1");
  // As the guide states them.
  const std::string& two = outputs.at("bash scripts/jit/train_multi_gpu.sh 2");
  expect_in(two, "effective batch 128 = 64 per process");
  expect_in(two, "learning rate 0.0001");
  expect_in(outputs.at("bash scripts/jit/train.sh"), "learning rate 5e-05");
  expect_in(outputs.at("bash scripts/jit/train_multi_gpu.sh 4"),
            "effective batch 256 = 64 per process");
}

// A data set in the guide's layout, with images of 40 x 30 pixels.
void write_scribbles(const fs::path& root) {
  const auto source =
      voc::generated_scribbles(voc::ScribbleMode::kScribblePseudoDsDc);
  const auto truths = voc::generated_truths();
  const auto write = [&](const std::string& folder, const std::string& name,
                         const data::Image& image) {
    fs::create_directories(root / folder);
    data::write_png(root / folder / (name + ".png"), image);
  };
  const auto write_image = [&](const std::string& name,
                               const data::Image& image) {
    fs::create_directories(root / "JPEGImages");
    base::write_file_atomically(root / "JPEGImages" / (name + ".jpg"),
                                encode_jpeg(image, JpegKind::kBaseline));
  };
  std::string train;
  for (int i = 0; i < 64; ++i) {  // A batch of 16 for 4 processes.
    const std::string name = "t" + std::to_string(i);
    const voc::LabelledImage item = source->read(i);
    write_image(name, item.image);
    write("pascal_2012_scribble", name, item.labels);
    for (const char* folder : {"bmp_pseudolabel", "bmp_ws_train_aug_dataset"}) {
      write(folder, name, item.pseudo);
    }
    for (const char* folder :
         {"distance_map", "distancemap/scribble/dsmp_lambd_e"}) {
      write(folder, name, item.scribble_distances);
    }
    for (const char* folder :
         {"distance_pseudo", "distancemap/cam/dsmp_lambd_e6"}) {
      write(folder, name, item.outline_distances);
    }
    train += name + "\n";
  }
  write_image("v", truths->read(0).image);
  write("SegmentationClassAug", "v", truths->read(0).labels);
  fs::create_directories(root / "ImageSets" / "SegmentationAug");
  const fs::path lists = root / "ImageSets" / "SegmentationAug";
  base::write_file_atomically(lists / "train.txt", train);
  base::write_file_atomically(lists / "val.txt", "v\n");
}

TEST(Guides, EveryCommandOfScribbleWorks) {
  const Words commands = commands_of("from-the-guides.md", "scribble");
  EXPECT_EQ(commands, commands_of("from-the-guides.zh-CN.md", "scribble"));
  EXPECT_GE(commands.size(), 12U);
  const TempDir temp;
  write_scribbles(temp.path() / "dataset" / "ScribbleSup" / "VOC2012");
  const auto outputs =
      run_commands(commands, temp, "--layers=18 --crop_size=33");
  // As the guide states them.
  const auto expect_stated = [&](const std::string& command,
                                 const std::string& batch,
                                 const std::string& rate) {
    const std::string& output = outputs.at(command);
    expect_in(output, "effective batch 16 = " + batch + " per process");
    expect_in(output, "learning rate " + rate);
  };
  expect_stated("bash scripts/scribble/train_torchrun.sh", "8", "0.002");
  expect_stated("bash scripts/scribble/train_ddp.sh", "8", "0.002");
  expect_stated("lockstep train scribble --nproc 4 --batchsize 4", "4",
                "0.004");
  expect_stated(
      "lockstep train scribble --layers 50 --model_type res50_ASPP_lorm", "16",
      "0.001");
}

TEST(Guides, EveryCommandOfAtlasWorks) {
  Words commands = commands_of("from-the-guides.md", "atlas");
  EXPECT_EQ(commands, commands_of("from-the-guides.zh-CN.md", "atlas"));
  EXPECT_GE(commands.size(), 9U);
  const auto resumes =
      std::ranges::stable_partition(commands, [](const std::string& command) {
        return !contains(command, "--resume");
      });
  const Words again(resumes.begin(), resumes.end());
  commands.erase(resumes.begin(), resumes.end());
  ASSERT_GE(again.size(), 2U);
  const TempDir temp;
  const std::string small =
      "--fusion_hidden_dim=32 --fusion_heads=4 --fusion_layers=1 "
      "--data_dir=builtin:reach:16 ";
  const auto outputs = run_commands(commands, temp, small);
  // As the guide states them.
  const std::string& eight = outputs.at(
      "lockstep train atlas --nproc 8 --config "
      "atlas/configs/train_config.yaml");
  expect_in(eight, "share/lockstep/atlas/configs/train_config.yaml; copy it");
  expect_in(eight, "effective batch 64 = 8 per process");
  expect_in(eight, "learning rate 0.0008 = 0.0001 x 8 processes");
  // The guide has 1000, as the file's REAL line does: atlas_recipe_test.cpp.
  expect_in(eight, "20 warm-up steps");
  expect_in(eight, "Training setup:\n  Distributed: True\n  World size: 8\n");
  // The guide goes on from its tenth epoch.
  run_commands(
      {"lockstep train atlas --config atlas/configs/train_config.yaml"}, temp,
      small, "--num_epochs=1 --overwrite");
  const fs::path checkpoints = temp.path() / "checkpoints";
  fs::copy_file(checkpoints / "checkpoint_epoch_1.pt",
                checkpoints / "checkpoint_epoch_10.pt");
  run_commands(again, temp, small, "--num_epochs=2");
}

// "Debug DDP Training" of the guide, in VS Code: the same flags and variables.
TEST(Guides, TheDebugConfigurationOfScribbleTrains) {
  const auto file = nlohmann::json::parse(
      base::read_file(SOURCE_FOLDER "/.vscode/launch.json"));
  const auto& debug = file.at("configurations").at(0);
  EXPECT_EQ(debug.at("name"), "Debug DDP Training");
  const auto program = debug.at("program").get<std::string>();
  EXPECT_EQ(program, "${workspaceFolder}/build/dev/bin/lockstep-worker");
  Words command = {PROGRAMS_FOLDER "/lockstep-worker"};
  for (const auto& word : debug.at("args")) command.push_back(word);
  const std::string line = base::join(command, " ");
  for (const char* words :
       {" train scribble ", " --distributed --local_rank 0 ", " --layers 50 ",
        " --model_type res50_ASPP_lorm"}) {
    expect_in(line, words);
  }
  const TempDir temp;
  ProcessOptions options = process_options({});
  options.folder = temp.path().string();
  std::map<std::string, std::string> variables;
  for (const auto& variable : debug.at("environment")) {
    variables[variable.at("name")] = variable.at("value");
  }
  EXPECT_EQ(variables,
            (std::map<std::string, std::string>{{"RANK", "0"},
                                                {"WORLD_SIZE", "1"},
                                                {"LOCAL_RANK", "0"},
                                                {"MASTER_ADDR", "localhost"},
                                                {"MASTER_PORT", "12355"}}));
  for (const auto& [name, value] : variables) options.environment[name] = value;
  const auto result = run(command + Words{"--fast_dev_run", "--layers=18",
                                          "--crop_size=33", "--batchsize=2"},
                          options);
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  expect_in(result.out, "Distributed: False\n  World size: 1\n");
}

TEST(Guides, EveryCommandOfProteinWorks) {
  const Words commands = commands_of("from-the-guides.md", "protein");
  EXPECT_EQ(commands, commands_of("from-the-guides.zh-CN.md", "protein"));
  EXPECT_GE(commands.size(), 16U);
  const TempDir temp;
  const fs::path cache = temp.path() / "data" / "cache";
  fs::create_directories(cache);
  for (int i = 0; i < 80; ++i) {
    const proteins::GeneratedChainConfig chains = {.min_residues = 8,
                                                   .max_residues = 16};
    proteins::write_protein_file(
        cache / ("p" + std::to_string(i) + ".pt"),
        proteins::make_protein(proteins::generated_structure(chains, i),
                               "p.pdb"));
  }
  const auto outputs = run_commands(
      commands, temp, "--pdb_path=data/cache --cache_dir=data/cache");
  // As the guide states them.
  const std::string flags =
      " --pdb_path data/cache --cache_dir data/cache --epochs 50 --batch_size ";
  const auto expect_batch = [&](const std::string& command,
                                const std::string& batch) {
    expect_in(outputs.at(command), "effective batch " + batch);
    expect_in(outputs.at(command), "learning rate 0.0001");
  };
  expect_batch("lockstep train protein --nproc 8" + flags + "8",
               "64 = 8 per process");
  expect_batch("lockstep train protein" + flags + "4", "4 = 4 per process");
}

}  // namespace
}  // namespace lockstep::testing
