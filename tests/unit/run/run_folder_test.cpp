#include "lockstep/run/run_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/engine/file_names.h"
#include "support/temp_dir.h"
#include "unit/engine/flags.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::config_error;
using testing::contains;
using testing::TempDir;

std::string refusal(const fs::path& path, const TrainConfig& config = {}) {
  return config_error([&] {
    run::check_folder_place(path);
    run::check_folder_is_free(path, config, {});
  });
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A requeued job of Slurm has its number again.
TEST(RunFolder, IsNamedAfterTheJobThatMayResumeIt) {
  const base::Environment slurm = {{"SLURM_JOB_ID", "12"}};
  EXPECT_EQ(run::job_line(slurm), "# job 12 of Slurm\n");
  base::Environment launched = slurm;
  launched["LOCKSTEP_JOB"] = "a";
  EXPECT_EQ(run::job_line(launched), "# job a\n");
  EXPECT_EQ(run::job_line({}), "");
  EXPECT_EQ(run::restart_count({}), 0);
  EXPECT_EQ(run::restart_count({{"SLURM_RESTART_COUNT", "2"}}), 2);
  EXPECT_EQ(run::restart_count({{"SLURM_RESTART_COUNT", "2"},
                                {"TORCHELASTIC_RESTART_COUNT", "0"}}),
            0)
      << "the launcher's own count";
}

TEST(RunFolder, CheckingMakesNothing) {
  const TempDir folder;
  EXPECT_EQ(refusal(folder.path() / "a" / "b"), "");
  EXPECT_EQ(refusal(folder.path()), "");
  EXPECT_TRUE(files_in(folder.path()).empty());
}

TEST(RunFolder, AFolderOfAnotherRunIsNeverTaken) {
  const TempDir folder;
  run::open_run_folder(folder.path() / "run", {}, {}, "seed: 1\n");
  EXPECT_EQ(base::read_file(folder.path() / "run" / run::kConfigFile),
            "seed: 1\n");
  const std::string text = refusal(folder.path() / "run");
  EXPECT_TRUE(contains(text, (folder.path() / "run").string())) << text;
  EXPECT_TRUE(contains(text, "--resume latest")) << text;
  EXPECT_TRUE(contains(text, "--overwrite")) << text;
  EXPECT_EQ(refusal(folder.path() / "run", {.resume = "latest"}), "");
  EXPECT_EQ(refusal(folder.path() / "run", {.overwrite = true}), "");
  EXPECT_EQ(refusal(folder.path() / "run", {.fast_dev_run = true}), "");
}

TEST(RunFolder, CheckpointsAloneAreARunToo) {
  const TempDir folder;
  folder.write("checkpoint_step_final.pt", "the user's own");
  EXPECT_EQ(refusal(folder.path()), "");
  folder.write("checkpoint_step_10.pt", "old");
  EXPECT_TRUE(contains(refusal(folder.path()), "holds checkpoints of a run"));
  EXPECT_EQ(refusal(folder.path(), {.resume = "latest"}), "");
  EXPECT_EQ(refusal(folder.path(), {.overwrite = true}), "");
}

TEST(RunFolder, AWordThatIsNoFileIsNotTakenForOne) {
  const TempDir folder;
  run::open_run_folder(folder.path(), {}, {}, "");
  const std::string text = refusal(folder.path(), {.resume = "lastest"});
  EXPECT_TRUE(contains(text, "--resume lastest: there is no such file"))
      << text;
  EXPECT_TRUE(contains(text, "--resume latest")) << text;
}

TEST(RunFolder, BelongsToOneTrainingAtATime) {
  const TempDir folder;
  {
    const base::FileDescriptor lock = run::lock_run_folder(folder.path());
    const std::string text =
        config_error([&] { run::lock_run_folder(folder.path()); });
    EXPECT_TRUE(contains(text, "in use by another training (process " +
                                   std::to_string(getpid()) + " on "))
        << text;
  }
  EXPECT_TRUE(bool(run::lock_run_folder(folder.path())));
}

// It has just got the lock, or the disk is full.
TEST(RunFolder, ATrainingThatHasNotWrittenItsNameIsSaidToBeUnknown) {
  const TempDir folder;
  const std::string file = folder.write(run::kLockFile, "");
  const base::FileDescriptor other(open(file.c_str(), O_RDWR));
  ASSERT_EQ(flock(other.get(), LOCK_EX | LOCK_NB), 0);
  const std::string text =
      config_error([&] { run::lock_run_folder(folder.path()); });
  EXPECT_FALSE(contains(text, "()")) << text;
  EXPECT_TRUE(contains(text, "fuser " + file)) << text;
}

TEST(RunFolder, AnOldNameInTheLockIsReplacedWhole) {
  const TempDir folder;
  folder.write(run::kLockFile,
               "process 1234567890 on a-host-with-a-long-name\n");
  const base::FileDescriptor lock = run::lock_run_folder(folder.path());
  const std::string name = base::read_file(folder.path() / run::kLockFile);
  EXPECT_TRUE(name.starts_with("process " + std::to_string(getpid()))) << name;
  EXPECT_EQ(std::ranges::count(name, '\n'), 1) << name;
}

TEST(RunFolder, OverwritingRemovesTheRunAndNothingElse) {
  const TempDir folder;
  for (const char* name :
       {"checkpoint_step_10.pt", "checkpoint_step_9.pt", "best_model.pt",
        "train.log", "metrics.jsonl", "config.yaml", "notes.txt",
        "checkpoint_step_10.pt.backup", "checkpoint_step_10_good.pt",
        "loss.png", "my_best_model.pt"}) {
    folder.write(name, "old");
  }
  run::open_run_folder(folder.path(), {.overwrite = true}, {}, "new");
  EXPECT_EQ(files_in(folder.path()),
            (std::vector<std::string>{
                "checkpoint_step_10.pt.backup", "checkpoint_step_10_good.pt",
                "config.yaml", "my_best_model.pt", "notes.txt"}));
  EXPECT_EQ(base::read_file(folder.path() / "config.yaml"), "new");
}

TEST(RunFolder, ResumingRemovesNothing) {
  const TempDir folder;
  folder.write("checkpoint_step_10.pt", "old");
  folder.write("metrics.jsonl", "old");
  run::open_run_folder(folder.path(), {.resume = "latest"}, {}, "new");
  EXPECT_EQ(base::read_file(folder.path() / "checkpoint_step_10.pt"), "old");
  EXPECT_EQ(base::read_file(folder.path() / "metrics.jsonl"), "old");
}

TEST(RunFolder, OpeningRemovesWhatKilledWritersLeft) {
  const TempDir folder;
  folder.write("checkpoint_step_3.pt", "whole");
  folder.write("checkpoint_step_4.pt.partial.a1B2c3", "half");
  run::open_run_folder(folder.path(), {.resume = "latest"}, {}, "new");
  EXPECT_EQ(
      files_in(folder.path()),
      (std::vector<std::string>{"checkpoint_step_3.pt", run::kConfigFile}));
}

TEST(RunFolder, AFileInTheWayIsNamed) {
  const TempDir folder;
  const std::string file = folder.write("file", "x");
  for (const fs::path& path : {fs::path(file), fs::path(file) / "a" / "b"}) {
    const std::string text = refusal(path);
    EXPECT_TRUE(contains(text, file + " is a file")) << text;
    EXPECT_TRUE(contains(text, "--save_dir")) << text;
    // A run to go on with cannot be there either.
    EXPECT_NE(refusal(path, {.resume = "latest"}), "");
  }
}

// Root may write everywhere but not here.
TEST(RunFolder, APlaceThatCannotBeWrittenIsAnError) {
  const std::string text = config_error([] {
    run::check_folder_place("/proc/run");
    run::open_run_folder("/proc/run", {}, {}, "");
  });
  EXPECT_TRUE(contains(text, "--save_dir /proc/run")) << text;
}

TEST(RunFolder, FileNamesTakeStepAndEpoch) {
  EXPECT_EQ(engine::file_name("checkpoint_step_{step}.pt", 120, 3),
            "checkpoint_step_120.pt");
  EXPECT_EQ(engine::file_name("e{epoch}/s{step}_{step}.png", 7, 2),
            "e2/s7_7.png");
  EXPECT_EQ(engine::file_name("best.pt", 7, 2), "best.pt");
}

TEST(RunFolder, OutputFilesStayBelowIt) {
  EXPECT_EQ(engine::output_name("images/a..b_{step}.png", 7, 2),
            "images/a..b_7.png");
  for (const char* name : {"/tmp/a.png", "../a.png", "images/../../a.png"}) {
    const std::string text =
        config_error([&] { engine::output_name(name, 7, 2); });
    EXPECT_TRUE(contains(text, std::string("'") + name + "'")) << text;
  }
}

}  // namespace
}  // namespace lockstep
