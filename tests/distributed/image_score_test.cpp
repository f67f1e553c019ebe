// Common to recipes that generate images: scores, sampling, damaged files.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <regex>

#include "distributed/training.h"
#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/registry.h"
#include "lockstep/sampler.h"
#include "support/images.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

const Words kTiny = {"--dim=16",         "--depth=1",
                     "--heads=2",        "--img_size=16",
                     "--n_steps=2",      "--sample_every=none",
                     "--sample_steps=2", "--limit_val_batches=1",
                     "--batch_size=8",   "--data_path=builtin:shapes"};

Training tiny(const std::string& recipe, const fs::path& folder, Words more) {
  return {.recipe = recipe, .folder = folder, .flags = kTiny + more};
}

// A run of dit of two steps.
struct Trained {
  Trained() {
    run_well(tiny("dit", folder(), {"--no_use_wandb", "--patch=4"}));
  }
  fs::path folder() const { return temp.path() / "run"; }
  std::string checkpoint() const { return (folder() / "model.pth").string(); }

  ProcessResult sample(const Words& flags) const {
    return run(
        Words{LOCKSTEP_PROGRAM, "sample", "dit", "--checkpoint", checkpoint()} +
            flags,
        process_options({}));
  }

  TempDir temp;
};

double score_in(const std::string& text) {
  std::smatch found;
  EXPECT_TRUE(
      std::regex_search(text, found, std::regex(R"(fd_builtin: ([0-9.]+))")))
      << text;
  return found.empty() ? 0 : std::stod(found[1]);
}

TEST(ImageScores, AreThoseOfAnyNumberOfProcesses) {
  const Trained trained;
  std::vector<double> scores;
  for (const char* world : {"1", "3"}) {
    const auto result =
        run(Words{LOCKSTEP_PROGRAM, "eval", "dit", "--nproc", world,
                  "--checkpoint", trained.checkpoint(), "--fid",
                  "--num_fid_samples=31", "--fid_steps=2"},
            process_options({}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.out, "(31 images, weights)");
    scores.push_back(score_in(result.out));
  }
  EXPECT_GT(scores[0], 10);
  EXPECT_NEAR(scores[1], scores[0], 1e-5 * scores[0]);
  EXPECT_TRUE(fs::exists(trained.folder() / "results" / "dataset_stats.npz"));
}

// Two classes of some images each, less than a validation set needs.
void write_set(const TempDir& temp, const data::Image& image) {
  for (const char* name : {"a", "b"}) {
    fs::create_directories(temp.path() / "data" / name);
    for (int i = 0; i < 4; ++i) {
      temp.write("data/" + std::string(name) + "/" + std::to_string(i) + ".jpg",
                 encode_jpeg(image, JpegKind::kBaseline));
    }
  }
}

const char* const kNoFid = "no --fid_weights: generated images are scored";

// Trained on a folder of images.
struct OnFolder {
  OnFolder() { write_set(temp, test_image(20, 18)); }
  fs::path folder() const { return temp.path() / "run"; }
  fs::path statistics() const {
    return folder() / "results" / "dataset_stats.npz";
  }

  Training training(const Words& more) const {
    return tiny("dit", folder(),
                Words{"--no_use_wandb", "--patch=4", "--batch_size=2",
                      "--num_fid_samples=6", "--fid_steps=2",
                      "--data_path=" + (temp.path() / "data").string()} +
                    more);
  }
  ProcessResult eval(const Words& more) const {
    return run(Words{LOCKSTEP_PROGRAM, "eval", "dit", "--checkpoint",
                     (folder() / "model.pth").string()} +
                   more,
               process_options({}));
  }
  double score() const {
    const auto result = eval({"--fid"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return score_in(result.out);
  }

  TempDir temp;
};

TEST(ImageScores, AreAgainstTheDataOfToday) {
  const OnFolder data;
  run_well(data.training({}));
  const double before = data.score();
  const auto written = fs::last_write_time(data.statistics());
  EXPECT_EQ(data.score(), before);
  EXPECT_EQ(fs::last_write_time(data.statistics()), written);
  // As many images with the same names.
  data::Image dark = test_image(20, 18);
  for (auto& level : dark.pixels) level /= 2;
  write_set(data.temp, dark);
  const double after = data.score();
  EXPECT_NE(after, before);
  fs::remove(data.statistics());
  EXPECT_EQ(data.score(), after);
}

TEST(ImageScores, NeedNoValidationData) {
  const OnFolder data;
  // The first score would come after the last step: nothing is said of scores.
  const auto trained = run(data.training({}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  expect_not_in(trained.out, kNoFid);
  const auto scored = data.eval({"--fid", "--ema=0"});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  expect_in(scored.out, "(6 images, moving average 0)");
  expect_in(scored.out, kNoFid);
  const auto refused = data.eval({});
  EXPECT_NE(refused.exit_code, 0);
  expect_in(refused.err, "there is no validation data");
}

// Here a file lies where its folder would be.
TEST(ImageScores, NeedNoRoomForTheStatistics) {
  const OnFolder data;
  run_well(data.training({}));
  base::write_file_atomically(data.folder() / "results", "");
  const auto scored = data.eval({"--fid"});
  EXPECT_EQ(scored.exit_code, 0) << scored.err;
  expect_in(scored.out, "(6 images, weights)");
}

TEST(ImageScores, RefuseWrongFilesBeforeTheRun) {
  const OnFolder data;
  const std::string wrong = data.temp.write("wrong.npz", "no statistics");
  for (const std::string flag : {"--fid_weights=", "--fid_stats="}) {
    const auto result = run(data.training({"--fid_every=1000", flag + wrong}));
    EXPECT_NE(result.exit_code, 0);
    expect_in(result.err, wrong);
    EXPECT_FALSE(fs::exists(data.folder()));
  }
  const Trained trained;
  const auto result =
      run(Words{LOCKSTEP_PROGRAM, "eval", "dit", "--checkpoint",
                trained.checkpoint(), "--fid", "--fid_stats=" + wrong},
          process_options({}));
  EXPECT_NE(result.exit_code, 0);
  expect_in(result.err, wrong);
  expect_not_in(result.out, "loss");
}

TEST(ImageScores, ThatFailLoseNoCheckpointAndAreDoneAgain) {
  const OnFolder data;
  Training training =
      data.training({"--n_steps=4", "--save_every=2", "--fid_every=2"});
  // Not among the images of the first two steps; the score reads them all.
  const fs::path image = data.temp.path() / "data" / "b" / "2.jpg";
  const std::string sound = base::read_file(image);
  base::write_file_atomically(image, sound.substr(0, 100));
  const auto failed = run(training);
  EXPECT_NE(failed.exit_code, 0);
  expect_in(failed.out, kNoFid);
  expect_in(failed.err, "2.jpg");
  const fs::path checkpoint = data.folder() / "model.pth";
  ASSERT_TRUE(fs::exists(checkpoint)) << failed.err;
  const std::string second_step = base::read_file(checkpoint);

  base::write_file_atomically(image, sound);
  training.flags.push_back("--resume=latest");
  run_well(training);
  const auto scores = metric(data.folder(), "fd_builtin");
  EXPECT_EQ(scores.size(), 2U);
  // As after a kill between the score and the next checkpoint.
  data.temp.write("run/model.pth", second_step);
  run_well(training);
  EXPECT_EQ(metric(data.folder(), "fd_builtin"), scores);
}

// For the images that dit generates after some steps.
double score_after(int steps) {
  const TempDir temp;
  const std::string count = std::to_string(steps);
  run_well(
      {.recipe = "dit",
       .world = 2,
       .folder = temp.path(),
       .flags = {"--data_path=builtin:shapes", "--img_size=16", "--patch=4",
                 "--dim=64", "--depth=3", "--heads=2", "--lr=2e-3",
                 "--batch_size=32", "--n_steps=" + count, "--ema_decay=0.95",
                 "--fid_every=" + count, "--num_fid_samples=500",
                 "--fid_steps=10", "--fid_cfg_scale=1.5", "--sample_every=none",
                 "--no_use_wandb", "--limit_val_batches=1"}});
  const auto scores = metric(temp.path(), "fd_builtin");
  EXPECT_EQ(scores.size(), 1U);
  return scores.empty() ? 0 : scores[0];
}

TEST(ImageScores, ImproveWithTraining) {
  EXPECT_LT(score_after(300), score_after(2) / 10);
}

TEST(ImageScores, OfARecipeWithoutImagesAreRefused) {
  const TempDir temp;
  run_well({.recipe = "tiny",
            .folder = temp.path(),
            .flags = {"--epochs=1", "--limit_train_batches=1"}});
  const auto result =
      run(Words{LOCKSTEP_PROGRAM, "eval", "tiny", "--checkpoint",
                (temp.path() / "best_model.pt").string(), "--fid"},
          process_options({}));
  EXPECT_NE(result.exit_code, 0);
  expect_in(result.err, "--fid: the recipe tiny generates no images");
}

TEST(ImageSamplings, HaveTheAskedClassesAndFilesWithoutTheData) {
  const Trained trained;
  const auto result = trained.sample(
      {"--nproc=2", "--classes=3,7", "--copies=3", "--cfg_scales=2",
       "--sample_files=single", "--seed=5", "--data_path=/nowhere"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto files =
      files_below(trained.folder() / "sampled_seed_5" / "images");
  EXPECT_EQ(files.size(), 6U);
  const data::Image one =
      data::read_image(trained.folder() / "sampled_seed_5" / "images" /
                       "step2_cfg2.0" / "class7_2.png");
  EXPECT_EQ(one.width, 16);
}

TEST(ImageSamplings, RefuseAClassThatIsNot) {
  const Trained trained;
  const auto result = trained.sample({"--classes=10"});
  EXPECT_NE(result.exit_code, 0);
  expect_in(result.err,
            "--classes 10: there are 10 classes, numbered from 0 to 9");
}

TEST(Sampler, MakesTheFilesOfLockstepSample) {
  const Trained trained;
  const Words flags = {"--ema=0", "--classes=7", "--copies=4",
                       "--cfg_scales=1.5"};
  ASSERT_EQ(trained.sample(flags).exit_code, 0);
  Sampler sampler(make_recipe("dit"), trained.checkpoint(), flags);
  ASSERT_EQ(sampler.num_items(), 4);
  const auto files =
      sampler.render(sampler.sample(std::vector<int64_t>{0, 1, 2, 3}, 0));
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "images/step2_cfg1.5_ema.png");
  EXPECT_EQ(files[0].bytes,
            base::read_file(trained.folder() / "sampled_seed_0_ema_0" /
                            files[0].name));
}

// Three of them are damaged.
void write_damaged_set(const TempDir& temp) {
  write_set(temp, test_image(20, 18));
  fs::create_symlink("4.jpg", temp.path() / "data" / "b" / "4.jpg");
  temp.write("data/a/1.jpg", "");
  temp.write(
      "data/b/2.jpg",
      encode_jpeg(test_image(20, 18), JpegKind::kBaseline).substr(0, 200));
}

TEST(DamagedImages, EndTheTrainingWithTheirPathOrAreSkipped) {
  const TempDir temp;
  write_damaged_set(temp);
  Training training =
      tiny("dit", temp.path() / "run",
           {"--batch_size=2", "--n_steps=4", "--patch=4", "--no_use_wandb",
            "--data_path=" + (temp.path() / "data").string()});
  const auto refused = run(training);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_TRUE(
      std::regex_search(refused.err, std::regex("data/(a/1|b/2|b/4).jpg")))
      << refused.err;
  // Both ranks meet them, in the training data and in those of the score.
  training.folder = temp.path() / "second";
  training.world = 2;
  training.flags =
      training.flags + Words{"--skip_bad_samples", "--fid_every=4",
                             "--num_fid_samples=4", "--fid_steps=2"};
  const auto trained = run(training);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  expect_in(trained.out, " 3 samples could not be read");
}

TEST(JitRate, FollowsTheBatchWithBlr) {
  const TempDir temp;
  const auto result =
      run({.recipe = "jit",
           .world = 2,
           .folder = temp.path(),
           .flags = kTiny + Words{"--blr=5e-5", "--fast_dev_run",
                                  "--gradient_accumulation_steps=2"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out,
            "learning rate 6.25e-06 = 5e-05 x effective batch 32 / 256");
  const auto both =
      run({.recipe = "jit", .flags = kTiny + Words{"--blr=5e-5", "--lr=1e-4"}});
  EXPECT_NE(both.exit_code, 0);
  expect_in(both.err, "--blr sets the learning rate");
}

}  // namespace
}  // namespace lockstep::testing
