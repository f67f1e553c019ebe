// The recipe atlas as users start it: trainings, its cache, eval, sample,
// prepare.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "distributed/training.h"
#include "lockstep/datasets/episodes/reach.h"
#include "support/images.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

const Words kTiny = {"--vggt_checkpoint=vggt_tiny",
                     "--lang_encoder_name=llama_tiny",
                     "--data_dir=builtin:reach:24",
                     "--fusion_hidden_dim=64",
                     "--fusion_heads=4",
                     "--fusion_layers=2",
                     "--geom_output_dim=64",
                     "--warmup_steps=5",
                     "--log_interval=1",
                     "--dropout=0",
                     "--seed=3"};

Words in(const TempDir& temp) {
  return {"--cache_dir=" + (temp.path() / "cache").string(),
          "--train_log_dir=" + (temp.path() / "logs").string()};
}

Training training(const TempDir& temp, const std::string& name,
                  const Words& flags, int world = 1) {
  return {.recipe = "atlas",
          .world = world,
          .folder = temp.path() / name,
          .flags = kTiny + in(temp) + flags};
}

std::vector<fs::path> entries(const TempDir& temp) {
  std::vector<fs::path> found;
  for (const auto& entry :
       fs::recursive_directory_iterator(temp.path() / "cache")) {
    if (entry.path().extension() == ".safetensors") found.push_back(entry);
  }
  std::ranges::sort(found);
  return found;
}

ProcessResult run_command(const Words& words) {
  Words command = {LOCKSTEP_PROGRAM};
  command.insert(command.end(), words.begin(), words.end());
  ProcessOptions options = process_options({});
  return run(command, options);
}

TEST(AtlasTraining, OneAndTwoProcessesCachedAndNotHaveTheSameLosses) {
  const TempDir temp;
  const Words flags = {"--global_batch_size=6", "--n_steps=8",
                       "--lr_scaling=none", "--precision=fp64"};
  run_well(training(temp, "1", flags));
  run_well(training(temp, "2", flags, 2));
  run_well(training(temp, "3", flags, 3));
  run_well(training(temp, "uncached", flags + Words{"--no_cache_features"}));
  for (const char* name : {"train/loss", "train/pose_loss",
                           "train/gripper_loss", "val/pose_l2_error"}) {
    SCOPED_TRACE(name);
    const auto alone = metric(temp.path() / "1", name);
    ASSERT_FALSE(alone.empty());
    for (const char* other : {"2", "3", "uncached"}) {
      expect_close(metric(temp.path() / other, name), alone, 1e-5);
    }
  }
}

TEST(AtlasTraining, LearnsToReach) {
  const TempDir temp;
  Training run = training(
      temp, "run",
      {"--data_dir=builtin:reach:256", "--batch_size=16", "--n_steps=512",
       "--learning_rate=5e-4", "--val_interval=64", "--point_stride=7",
       "--gripper_loss_type=bce", "--pose_loss_type=l1", "--pose_weight=5"},
      2);
  ProcessOptions options = process_options(run);
  options.timeout_seconds = 400;
  const auto result = lockstep::testing::run(command_of(run), options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto errors = metric(run.folder, "val/pose_l2_error");
  ASSERT_EQ(errors.size(), 8U);
  // The best constant action has 0.31 and 0.53. The tiny encoders, which nobody
  // has trained, let positions through only dimly.
  EXPECT_LT(errors.back(), 0.3);
  EXPECT_GT(metric(run.folder, "val/gripper_accuracy").back(), 0.7);
  // What the guide shows of a run, and its files.
  expect_in(result.out,
            "Training setup:\n  Distributed: True\n  World size: 2\n"
            "  Rank: 0, Local rank: 0\n");
  expect_in(result.out, "learning rate 0.001 = 0.0005 x 2 processes");
  for (const char* file : {"checkpoint_epoch_8.pt", "best_model.pt"}) {
    EXPECT_TRUE(fs::exists(run.folder / file)) << file;
  }
  const auto logs = files_below(temp.path() / "logs");
  ASSERT_EQ(logs.size(), 1U);
  EXPECT_TRUE(logs[0].starts_with("train_20")) << logs[0];
}

TEST(AtlasTraining, AStoppedRunGoesOnAndFrozenNetsAreInNoCheckpoint) {
  const TempDir temp;
  const Words flags = {"--batch_size=16", "--num_epochs=2", "--precision=fp64"};
  run_well(training(temp, "whole", flags));
  run_well(training(temp, "part", flags + Words{"--save_interval=5"}));
  const fs::path part = temp.path() / "part";
  EXPECT_TRUE(fs::exists(part / "checkpoint_step_5.pt"));
  EXPECT_TRUE(fs::exists(part / "checkpoint_epoch_1.pt"));
  const Tree checkpoint = last_checkpoint(part);
  for (const char* key :
       {"epoch", "global_step", "model_state_dict", "optimizer_state_dict",
        "scheduler_state_dict", "scaler_state_dict", "best_val_loss"}) {
    EXPECT_NE(checkpoint.find(key), nullptr) << key;
  }
  for (const auto& entry : checkpoint.at("model_state_dict").as_dict()) {
    EXPECT_FALSE(entry.key.get_if<std::string>()->starts_with("vggt"));
  }
  const TreeView frozen = TreeView(checkpoint).at("lockstep").at("frozen");
  EXPECT_FALSE(frozen.at("vggt").as_string().empty());
  EXPECT_FALSE(frozen.at("lang_encoder").as_string().empty());
  for (const auto& entry : fs::directory_iterator(part)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".pt") && name != "checkpoint_step_5.pt") {
      fs::remove(entry.path());
    }
  }
  run_well({.recipe = "atlas",
            .folder = part,
            .flags = {"--resume", (part / "checkpoint_step_5.pt").string()}});
  expect_close(metric(part, "train/loss"),
               metric(temp.path() / "whole", "train/loss"), 1e-12);
}

TEST(AtlasTraining, DamagedEntriesOfTheCacheAreMadeAgain) {
  const TempDir temp;
  const Words flags = {"--n_steps=3", "--batch_size=8", "--precision=fp64"};
  run_well(training(temp, "first", flags));
  const auto files = entries(temp);
  ASSERT_GT(files.size(), 20U);
  const auto time = fs::last_write_time(files[2]);
  {
    std::fstream file(files[0],
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-9, std::ios::end);
    file.write("damaged", 7);
  }
  fs::resize_file(files[1], fs::file_size(files[1]) / 2);
  run_well(training(temp, "second", flags));
  EXPECT_EQ(metric_lines(temp.path() / "first"),
            metric_lines(temp.path() / "second"));
  EXPECT_EQ(fs::last_write_time(files[2]), time);
}

TEST(AtlasPrepare, MakesFeaturesOnSeveralProcessesOnce) {
  const TempDir temp;
  const Words settings = kTiny + in(temp);
  ASSERT_EQ(run_command(Words{"prepare", "atlas", "--nproc", "2"} + settings)
                .exit_code,
            0);
  const auto files = entries(temp);
  // 24 episodes to train on, 6 others, and some sentences.
  ASSERT_GE(files.size(), 33U);
  const auto made = fs::last_write_time(files[0]);
  ASSERT_EQ(run_command(Words{"prepare", "atlas"} + settings).exit_code, 0);
  EXPECT_EQ(entries(temp).size(), files.size());
  EXPECT_EQ(fs::last_write_time(files[0]), made);
}

TEST(AtlasPrepare, KilledGoesOnWhereItWas) {
  const TempDir temp;
  const Words settings =
      kTiny + in(temp) + Words{"--data_dir=builtin:reach:300"};
  Words words = {LOCKSTEP_PROGRAM, "prepare", "atlas"};
  words = words + settings;
  size_t num_before = 0;
  {
    Process process(words, process_options({}));
    const auto has_some = [&] {
      return fs::exists(temp.path() / "cache") && entries(temp).size() > 20;
    };
    ASSERT_TRUE(wait_for(has_some, 60)) << process.err();
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().exit_code, -SIGKILL);
    num_before = entries(temp).size();
  }
  ASSERT_LT(num_before, 300U) << "it was done before it was killed";
  std::map<fs::path, fs::file_time_type> times;
  for (const auto& file : entries(temp))
    times[file] = fs::last_write_time(file);
  ProcessOptions options = process_options({});
  const auto again = run(words, options);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_GE(entries(temp).size(), 378U);  // 300, 75, sentences
  // And nothing else, but for what is remembered of weights.
  for (const std::string& name : files_below(temp.path() / "cache")) {
    EXPECT_EQ(name.find(".partial"), std::string::npos) << name;
  }
  for (const auto& [file, time] : times) {
    EXPECT_EQ(fs::last_write_time(file), time) << file;
  }
}

class AtlasCommands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    temp_ = new TempDir;
    run_well(training(*temp_, "run", {"--n_steps=4", "--batch_size=8"}));
  }
  static void TearDownTestSuite() {
    delete temp_;
    temp_ = nullptr;
  }
  static std::string checkpoint() {
    return (temp_->path() / "run" / "best_model.pt").string();
  }
  static TempDir* temp_;
};
TempDir* AtlasCommands::temp_ = nullptr;

TEST_F(AtlasCommands, EvalGivesErrorsOfPoseAndGripper) {
  const auto one = run_command(
      {"eval", "atlas", "--checkpoint", checkpoint(), "--split", "val"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  for (const char* name : {"loss: ", "pose_l2_error: ", "pose_l1_error: ",
                           "gripper_error: ", "gripper_accuracy: "}) {
    expect_in(one.out, name);
  }
  const auto train = run_command(
      {"eval", "atlas", "--checkpoint", checkpoint(), "--split", "train"});
  ASSERT_EQ(train.exit_code, 0) << train.err;
  expect_in(train.out, "samples: 192");
  expect_in(one.out, "samples: 48");
}

TEST_F(AtlasCommands, SampleGivesTheActionForOneObservation) {
  const episodes::ReachTask task({.num_episodes = 1});
  temp_->write("workspace.png", data::encode_png(task.workspace(0, 0)));
  temp_->write("wrist.png", data::encode_png(task.wrist(0, 0)));
  const Words words = {
      "sample",        "atlas",
      "--checkpoint",  checkpoint(),
      "--workspace",   (temp_->path() / "workspace.png").string(),
      "--wrist",       (temp_->path() / "wrist.png").string(),
      "--instruction", task.sentence(0),
      "--save_dir",    (temp_->path() / "out").string()};
  const auto result = run_command(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const size_t begin = result.out.find("{\"x\"");
  ASSERT_NE(begin, std::string::npos) << result.out;
  const auto action = nlohmann::json::parse(
      result.out.substr(begin, result.out.find('}', begin) - begin + 1));
  for (const auto name : formats::kActionNames) {
    EXPECT_TRUE(action.contains(std::string(name))) << name;
  }
  EXPECT_GE(action["gripper"].get<double>(), -1);

  Words blind(words.begin(), words.end() - 4);
  blind.resize(6);
  const auto missing = run_command(blind);
  EXPECT_NE(missing.exit_code, 0);
  expect_in(missing.err, "--instruction");
}

TEST_F(AtlasCommands, OtherFrozenNetsAreRefused) {
  // The same run with a LLaMA of other limits: other features.
  const auto result =
      run_command({"eval", "atlas", "--checkpoint", checkpoint(),
                   "--encoder_precision", "bf16"});
  EXPECT_NE(result.exit_code, 0);
  expect_in(result.err, "trained with other weights of lang_encoder");
}

}  // namespace
}  // namespace lockstep::testing
