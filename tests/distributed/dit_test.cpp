// The recipe dit through the real programs, small.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"
#include "lockstep/data/image.h"
#include "support/cifar10_files.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

// One step in a second.
const Words kShort = {"--dim=16",         "--depth=1",
                      "--heads=2",        "--patch=8",
                      "--n_steps=2",      "--sample_every=2",
                      "--sample_steps=2", "--limit_val_batches=1"};

Training dit(const fs::path& folder, Words flags) {
  return {
      .recipe = "dit",
      .folder = folder,
      .flags = Words{"--data_path=builtin:shapes", "--no_use_wandb"} + flags};
}

void expect_files_of_guide(const fs::path& folder) {
  for (const char* name : {"1.0", "2.5", "5.0"}) {
    for (const char* ending : {".png", "_ema.png", ".gif", "_ema.gif"}) {
      const fs::path path =
          folder / "images" / ("step2_cfg" + std::string(name) + ending);
      EXPECT_TRUE(fs::is_regular_file(path)) << path;
    }
  }
  const data::Image grid =
      data::read_image(folder / "images" / "step2_cfg2.5.png");
  EXPECT_EQ(grid.width, 340);
  EXPECT_EQ(grid.height, 340);
  const Tree file = load_checkpoint(folder / "model.pth");
  ASSERT_EQ(file.get_if<Tree::Dict>()->size(), 3U);
  EXPECT_EQ(file.at("model").at("pos_embed").as_tensor().size(1), 16);
  EXPECT_EQ(file.at("ema").at("num_updates").as_tensor().item<int64_t>(), 2);
  EXPECT_NE(file.at("ema").value().find("blocks0attnqkvweight"), nullptr);
  EXPECT_EQ(file.at("ema").value().find("pos_embed"), nullptr);
}

TEST(Dit, WritesTheFilesOfTheGuide) {
  const TempDir temp;
  const Training training =
      dit(temp.path() / "run", kShort + Words{"--batch_size=8", "--use_wandb"});
  ProcessOptions options = process_options(training);
  options.folder = temp.path().string();
  const auto result = run(command_of(training), options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_files_of_guide(temp.path() / "run");
  const auto runs = files_below(temp.path() / "wandb");
  EXPECT_TRUE(std::ranges::any_of(runs, [](const std::string& name) {
    return contains(name, "offline-run-") && name.ends_with(".wandb");
  }));
}

TEST(Dit, SamplesWithTheWeightsOrTheirAverage) {
  const TempDir temp;
  run_well(dit(temp.path() / "run",
               kShort + Words{"--batch_size=8", "--sample_every=none"}));
  EXPECT_FALSE(fs::exists(temp.path() / "run" / "images"));
  for (const Words& more : {Words{}, Words{"--ema=0"}}) {
    const auto result =
        run(Words{LOCKSTEP_PROGRAM, "sample", "dit", "--checkpoint",
                  (temp.path() / "run" / "model.pth").string()} +
                more,
            process_options({}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  for (const char* name : {"sampled_seed_0", "sampled_seed_0_ema_0"}) {
    EXPECT_EQ(files_below(temp.path() / "run" / name / "images").size(), 6U);
  }
}

TEST(Dit, ResumesToTheBit) {
  const TempDir temp;
  const Words flags = kShort + Words{"--batch_size=8", "--n_steps=4",
                                     "--log_every=1", "--sample_every=3"};
  run_well(dit(temp.path() / "whole", flags));
  run_well(dit(temp.path() / "parts", flags + Words{"--n_steps=3"}));
  run_well(dit(temp.path() / "parts", flags + Words{"--resume=latest"}));
  EXPECT_EQ(metric(temp.path() / "whole", "train/loss"),
            metric(temp.path() / "parts", "train/loss"));
}

TEST(Dit, ReadsCifar10AndSaysWhatAWrongPathLacks) {
  const TempDir temp;
  temp.write("data_batch_1", cifar10_python(0, 24));
  temp.write("test_batch", cifar10_python(0, 6));
  Training training{.recipe = "dit",
                    .folder = temp.path() / "run",
                    .flags = kShort + Words{"--data_path", temp.path().string(),
                                            "--batch_size=8", "--cfg_scales=1",
                                            "--no_use_wandb"}};
  run_well(training);
  EXPECT_EQ(metric(temp.path() / "run", "val/loss").size(), 1U);
  training.flags.push_back("--data_path=" + (temp.path() / "run").string());
  training.folder = temp.path() / "other";
  const auto result = run(training);
  EXPECT_EQ(result.exit_code, 2);
  expect_in(result.err, "cifar-10-batches-py");
  EXPECT_FALSE(fs::exists(training.folder));
}

TEST(Dit, ScriptsRunFromAnyFolderWithVariablesAndFlags) {
  for (const char* script : {"run_ddp.sh", "run_single_gpu.sh"}) {
    const TempDir temp;
    ProcessOptions options = process_options({});
    options.folder = temp.path().string();
    options.environment["LOCKSTEP"] = LOCKSTEP_PROGRAM;
    options.environment["DATA_PATH"] = "builtin:shapes";
    options.environment["BATCH_SIZE"] = "8";
    options.environment["NUM_REGISTER_TOKENS"] = "3";
    const auto result =
        run(Words{"bash", SOURCE_FOLDER "/scripts/dit/" + std::string(script)} +
                kShort + Words{"--cfg_scales=1.0", "--lr=2e-4"},
            options);
    ASSERT_EQ(result.exit_code, 0) << script << "\n" << result.err;
    const std::string config =
        base::read_file(temp.path() / "runs" / "dit" / "config.yaml");
    expect_in(config, "batch_size: 8\n");
    expect_in(config, "num_register_tokens: 3\n");
    expect_in(config, "n_steps: 2\n");
    expect_in(config, "lr: 0.0002\n");
  }
}

}  // namespace
}  // namespace lockstep::testing
