// The recipe scribble: it learns, alike on any number of processes, and its
// commands work.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "distributed/training.h"
#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/data/image.h"
#include "lockstep/data/label_map.h"
#include "lockstep/datasets/voc/generated.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

const Words kSmall = {"--data_path=builtin:scribble",
                      "--model_type=res50_ASPP_lorm",
                      "--layers=18",
                      "--numclasses=6",
                      "--sample_every=none",
                      "--log_every=1",
                      "--l_segs=1",
                      "--l_pesudo=1",
                      "--l_ds=1",
                      "--l_dc=1",
                      "--l_lorm=1"};

// In doubles: what depends on the number of processes is the order of sums
// alone, and a ReLU near 0 does not flip.
TEST(ScribbleTraining, OneAndTwoProcessesHaveTheSameLosses) {
  const TempDir temp;
  for (const int world : {1, 2}) {
    run_well({.recipe = "scribble",
              .world = world,
              .folder = temp.path() / std::to_string(world),
              .flags = kSmall + Words{"--global_batch_size=4", "--n_steps=4",
                                      "--precision=fp64", "--crop_size=65",
                                      "--lr_scaling=none",
                                      "--limit_val_batches=2"}});
  }
  for (const char* name :
       {"train/loss", "train/seg_loss", "train/pesudolabel_loss", "train/l_ds",
        "train/l_dc", "train/lorm_loss"}) {
    SCOPED_TRACE(name);
    const auto alone = metric(temp.path() / "1", name);
    ASSERT_EQ(alone.size(), 4U);
    EXPECT_GT(alone.front(), 0);
    expect_close(metric(temp.path() / "2", name), alone, 1e-5);
  }
}

// Gradients that lie otherwise than their parameters are copied in every step,
// and c10d warns of it.
TEST(ScribbleTraining, GradientsLieAsTheirParameters) {
  for (const char* type : {"res50_ASPP_lorm", "deeplabv3p_lorm"}) {
    const TempDir temp;
    const auto result = run(Training{
        .recipe = "scribble",
        .world = 2,
        .folder = temp.path() / "run",
        .flags =
            kSmall + Words{"--model_type", type, "--batchsize=2", "--n_steps=2",
                           "--crop_size=65", "--limit_val_batches=1"}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_not_in(result.err, "strides");
  }
}

// A small training on which the commands below work.
class TrainedScribble : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    temp_ = new TempDir;
    run_well({.recipe = "scribble",
              .folder = temp_->path() / "run",
              .flags = kSmall + Words{"--batchsize=2", "--n_steps=2",
                                      "--crop_size=65", "--sample_every=2"}});
  }
  static void TearDownTestSuite() {
    delete temp_;
    temp_ = nullptr;
  }

  static fs::path folder() { return temp_->path() / "run"; }
  static std::string checkpoint() {
    return (folder() / "last_checkpoint.pth").string();
  }
  static ProcessResult command(const Words& words) {
    return testing::run(Words{LOCKSTEP_PROGRAM} + words, process_options({}));
  }

  static TempDir* temp_;
};
TempDir* TrainedScribble::temp_ = nullptr;

TEST_F(TrainedScribble, HasTheFilesOfTheGuide) {
  for (const char* name : {"model_best.pth", "last_checkpoint.pth", "log.txt",
                           "loss.png", "images/step2.png"}) {
    EXPECT_TRUE(fs::exists(folder() / name)) << name;
  }
  const data::Image shown = data::read_image(folder() / "images" / "step2.png");
  EXPECT_EQ(shown.width, 3 * 67);   // Image, truth, prediction.
  EXPECT_EQ(shown.height, 4 * 67);  // Four images.
}

// In doubles: batches of other sizes round otherwise, and a pixel between two
// classes would flip.
TEST_F(TrainedScribble, EvaluatesWholeImagesAlikeOnAnyNumberOfProcesses) {
  std::string first;
  for (const char* world : {"1", "2", "3"}) {
    const fs::path save = temp_->path() / ("seen" + std::string(world));
    const auto result =
        command({"eval", "scribble", "--nproc", world, "--checkpoint",
                 checkpoint(), "--eval_scales", "0.75", "1", "--batch_size=2",
                 "--precision=fp64", "--save_path", save.string()});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.out, "samples: 40");
    expect_in(result.out, "iou: ");
    const std::string text = base::read_file(save.string() + ".txt");
    if (first.empty()) first = text;
    EXPECT_EQ(text, first);
    int num_images = 0;
    for (const std::string& name : files_below(save)) {
      num_images += name.ends_with(".png");
    }
    EXPECT_EQ(num_images, voc::kGeneratedToValidate);
  }
  EXPECT_TRUE(std::regex_search(
      first, std::regex(R"(IOU_All: 0\.\d+\nIOU_Ind:( \S+){6}\nACC_Pix: 0\.)")))
      << first;
}

TEST_F(TrainedScribble, SegmentsAUsersImages) {
  const fs::path images = temp_->path() / "mine";
  const auto source = voc::generated_truths();
  for (const char* name : {"a.png", "deep/b.png", "c.png"}) {
    fs::create_directories((images / name).parent_path());
    data::write_png(images / name, source->read(name[0]).image);
  }
  const auto result =
      command({"sample", "scribble", "--nproc", "2", "--checkpoint",
               checkpoint(), "--images", images.string(), "--eval_scales=1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "3 inputs");
  const fs::path made = folder() / "sampled_seed_1000";
  for (const char* name : {"a", "deep/b", "c"}) {
    const data::Image image =
        data::read_image(images / (std::string(name) + ".png"));
    const data::Image classes =
        data::read_label_map(made / (std::string(name) + ".png"));
    EXPECT_EQ(classes.width, image.width);
    EXPECT_EQ(classes.height, image.height);
    for (const uint8_t label : classes.pixels) ASSERT_LT(label, 6);
    EXPECT_TRUE(fs::exists(made / (std::string(name) + "_overlay.png")));
  }
}

TEST_F(TrainedScribble, RefusesWhatCannotWork) {
  const auto expect_refused = [&](const Words& words, const char* reason) {
    const auto result = command(words);
    EXPECT_NE(result.exit_code, 0);
    expect_in(result.err, reason);
  };
  const Words train = {"train", "scribble", "--data_path=builtin:scribble",
                       "--save_dir", (temp_->path() / "no").string()};
  expect_refused(train + Words{"--dataset=ScribbleOnly", "--l_lorm=1",
                               "--model_type=res50_ASPP_lorm"},
                 "--l_lorm 1 needs data that --dataset ScribbleOnly does not");
  expect_refused(train + Words{"--model_type=deeplabv2", "--l_lorm=1"},
                 "has no LoRM");
  expect_refused(train + Words{"--l_segs=0"}, "all weights of the loss are 0");
  expect_refused(train + Words{"--layers=20"}, "18, 34, 50, 101");
  expect_refused(train + Words{"--model_path=nowhere.pth"}, "no such file");
  expect_refused(train + Words{"--batchsize=1"}, "raise --batch_size");
  expect_refused(train + Words{"--batchsize=199", "--no_drop_last"},
                 "an epoch of 200 samples ends with one: use --drop_last");
  expect_refused(train + Words{"--dataset=PseudoOnly", "--l_pesudo=1"},
                 "leave --l_pesudo and --label_smooth out");
  expect_refused({"eval", "scribble", "--checkpoint", checkpoint(),
                  "--save_path", checkpoint() + "/x"},
                 "cannot make the folder");
  expect_refused({"sample", "scribble", "--checkpoint", checkpoint()},
                 "--images gives an image");
  expect_refused({"sample", "scribble", "--checkpoint", checkpoint(),
                  "--images", temp_->path() / "nothing"},
                 "no image there");
  EXPECT_FALSE(fs::exists(temp_->path() / "no"));
}

// Two images of one name, and one that is none.
TEST_F(TrainedScribble, LosesNoImageAndCanLeaveBadOnesOut) {
  const fs::path images = temp_->path() / "several";
  fs::create_directories(images);
  const data::Image image = voc::generated_truths()->read(1).image;
  data::write_png(images / "a.png", image);
  data::write_png(images / "a.PNG", image);
  temp_->write("several/b.png", "no image");
  const Words words = {"sample",         "scribble",
                       "--checkpoint",   checkpoint(),
                       "--images",       images.string(),
                       "--output_dir",   (temp_->path() / "made").string(),
                       "--eval_scales=1"};
  const auto refused = command(words);
  EXPECT_NE(refused.exit_code, 0);
  expect_in(refused.err, "b.png");
  const auto result = command(words + Words{"--skip_bad_samples"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "--skip_bad_samples left these out:");
  expect_in(result.out, "b.png");
  EXPECT_EQ(files_below(temp_->path() / "made").size(), 4U);
}

// The default of mixed precision is not forced upon what goes on from it.
TEST_F(TrainedScribble, GoesOnInThePrecisionOfTheRun) {
  const fs::path run = temp_->path() / "resumed";
  fs::copy(folder(), run, fs::copy_options::recursive);
  const auto result = testing::run(Training{
      .recipe = "scribble",
      .folder = run,
      .flags = {"--resume=latest", "--n_steps=3", "--limit_val_batches=1"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "precision fp32");
}

TEST_F(TrainedScribble, BeginsWithItsOwnCheckpoint) {
  const fs::path run = temp_->path() / "again";
  run_well({.recipe = "scribble",
            .folder = run,
            .flags = kSmall + Words{"--batchsize=2", "--n_steps=1",
                                    "--crop_size=65", "--model_path",
                                    checkpoint(), "--limit_val_batches=1"}});
  EXPECT_EQ(metric(run, "train/loss").size(), 1U);
}

}  // namespace
}  // namespace lockstep::testing
