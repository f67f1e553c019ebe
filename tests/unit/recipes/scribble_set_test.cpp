#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/data/label_map.h"
#include "lockstep/datasets/voc/distance_map.h"
#include "lockstep/datasets/voc/generated.h"
#include "lockstep/datasets/voc/prepare.h"
#include "lockstep/datasets/voc/voc_set.h"
#include "lockstep/error.h"
#include "support/images.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::refusal;
using testing::TempDir;

// A small data set of generated images in VOC's layout, without distances.
class VocTree {
 public:
  VocTree() {
    for (const char* part :
         {"ImageSets/SegmentationAug", "JPEGImages", "pascal_2012_scribble",
          "bmp_ws_train_aug_dataset", "SegmentationClassAug"}) {
      fs::create_directories(folder() / part);
    }
    const auto train =
        voc::generated_scribbles(voc::ScribbleMode::kScribblePseudo);
    const auto truths = voc::generated_truths();
    for (int64_t i = 0; i < 3; ++i) {
      const voc::LabelledImage item = train->read(i);
      const std::string name = "t" + std::to_string(i);
      write_image(name, item.image);
      data::write_png(scribble(name), item.labels);
      data::write_png(pseudo(name), item.pseudo);
      const voc::LabelledImage judged = truths->read(i);
      write_image("v" + std::to_string(i), judged.image);
      write(truth("v" + std::to_string(i)),
            data::encode_palette_png(judged.labels, data::voc_palette()));
    }
    write(list("train"), "t0\nt1\r\n\nt2\n");
    write(list("val"), "v0\nv1\nv2");
  }

  fs::path folder() const { return temp_.path() / "VOC2012"; }
  fs::path list(const std::string& name) const {
    return folder() / "ImageSets/SegmentationAug" / (name + ".txt");
  }
  fs::path scribble(const std::string& name) const {
    return folder() / "pascal_2012_scribble" / (name + ".png");
  }
  fs::path pseudo(const std::string& name) const {
    return folder() / "bmp_ws_train_aug_dataset" / (name + ".png");
  }
  fs::path truth(const std::string& name) const {
    return folder() / "SegmentationClassAug" / (name + ".png");
  }
  fs::path outlines(const std::string& name) const {
    return folder() / "distancemap/cam/dsmp_lambd_e6" / (name + ".png");
  }
  fs::path distances(const std::string& name) const {
    return folder() / "distancemap/scribble/dsmp_lambd_e" / (name + ".png");
  }

  voc::ScribbleDataConfig config(voc::ScribbleMode mode) const {
    return {.dataset_path = temp_.path().string(),
            .mode = mode,
            .augment = {.side = 64}};
  }

  std::string prepare(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"--dataset_path", folder().string(),
                                      "--workers", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return voc::prepare_scribble(words);
  }

  void write(const fs::path& path, std::string_view bytes) const {
    temp_.write(fs::relative(path, temp_.path()).string(), bytes);
  }

 private:
  void write_image(const std::string& name, const data::Image& image) const {
    write(folder() / "JPEGImages" / (name + ".jpg"),
          testing::encode_jpeg(image, testing::JpegKind::kBaseline));
  }

  TempDir temp_;
};

TEST(ScribbleSet, ModesHaveTheirNamesAndTheOriginalsDefault) {
  EXPECT_EQ(voc::scribble_mode("ScribbleOnly"),
            voc::ScribbleMode::kScribbleOnly);
  EXPECT_EQ(voc::scribble_mode("PseudoOnly"), voc::ScribbleMode::kPseudoOnly);
  EXPECT_EQ(voc::scribble_mode("ScribblePseudoDs"),
            voc::ScribbleMode::kScribblePseudoDs);
  EXPECT_EQ(voc::scribble_mode("SBD_pesudo_distancemap"),
            voc::ScribbleMode::kScribblePseudoDsDc);
  EXPECT_TRUE(
      contains(refusal<ConfigError>([] { voc::scribble_mode("scribbles"); }),
               "ScribblePseudoDsDc"));
}

TEST(ScribbleSet, EveryModeGivesItsMaps) {
  const VocTree tree;
  tree.prepare();
  for (const char* word :
       {"ScribbleOnly", "PseudoOnly", "ScribblePseudo", "ScribblePseudoDs",
        "ScribblePseudoDc", "ScribblePseudoDsDc"}) {
    const voc::ScribbleMode mode = voc::scribble_mode(word);
    const auto train = voc::open_scribble_sets(tree.config(mode)).train;
    ASSERT_EQ(train->size(), 3);
    const Sample sample = train->get(1, 77);
    ASSERT_EQ(sample.size(), 5U);
    EXPECT_EQ(sample[0].sizes(), (std::vector<int64_t>{3, 64, 64}));
    for (size_t i = 1; i < 5; ++i) {
      EXPECT_EQ(sample[i].sizes(), (std::vector<int64_t>{64, 64}));
      EXPECT_EQ(sample[i].scalar_type(), at::kByte);
    }
    const bool has_both = voc::has_scribbles(mode) && voc::has_pseudo(mode);
    EXPECT_EQ(sample[2].min().item<int>() != 255, has_both) << word;
    EXPECT_EQ(sample[3].max().item<int>() != 0,
              voc::has_scribble_distances(mode));
    EXPECT_EQ(sample[4].max().item<int>() != 0,
              voc::has_outline_distances(mode));
  }
}

TEST(ScribbleSet, PseudoLabelsTakeThePlaceOfScribbles) {
  const VocTree tree;
  fs::remove_all(tree.folder() / "pascal_2012_scribble");
  const auto only =
      voc::open_scribble_sets(tree.config(voc::ScribbleMode::kPseudoOnly))
          .train;
  const Sample sample = only->get(0, 5);
  // Scribbles would leave most pixels without a label.
  EXPECT_LT(sample[1].eq(255).sum().item<int>(), 64 * 64 / 2);
}

TEST(ScribbleSet, DrawsComeFromTheSeedAlone) {
  const VocTree tree;
  const auto config = tree.config(voc::ScribbleMode::kScribblePseudo);
  const auto first = voc::open_scribble_sets(config).train;
  const auto second = voc::open_scribble_sets(config).train;
  const Sample a = first->get(2, 9);
  const Sample b = second->get(2, 9);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i]));
  EXPECT_FALSE(at::equal(a[0], first->get(2, 10)[0]));
}

TEST(ScribbleSet, ValidatesOnCentresAndEvaluatesWholeImages) {
  const VocTree tree;
  const auto config = tree.config(voc::ScribbleMode::kScribbleOnly);
  const auto validation = voc::open_scribble_sets(config).validation;
  ASSERT_NE(validation, nullptr);
  ASSERT_EQ(validation->size(), 3);
  const data::Image truth = data::read_label_map(tree.truth("v1"));
  const Sample centre = validation->get(1, 0);
  EXPECT_EQ(centre[1][0][0].item<int>(),
            truth.row((truth.height - 64) / 2)[(truth.width - 64) / 2]);

  const auto whole = voc::open_whole_images(config);
  ASSERT_EQ(whole->size(), 3);
  EXPECT_EQ(whole->name(2), "v2");
  std::vector<Sample> samples = {whole->get(0, 0), whole->get(1, 0)};
  EXPECT_EQ(samples[1][2][0].item<int>(), truth.height);
  EXPECT_EQ(samples[1][2][1].item<int>(), truth.width);
  const Sample batch = whole->collate(samples);
  const int64_t height = std::max(samples[0][0].size(1), samples[1][0].size(1));
  const int64_t width = std::max(samples[0][0].size(2), samples[1][0].size(2));
  EXPECT_EQ(batch[0].sizes(), (std::vector<int64_t>{2, 3, height, width}));
  EXPECT_EQ(batch[2].sizes(), (std::vector<int64_t>{2, 2}));
  for (int64_t i = 0; i < 2; ++i) {
    const Sample& sample = samples[size_t(i)];
    const at::Tensor part = batch[1][i]
                                .narrow(0, 0, sample[1].size(0))
                                .narrow(1, 0, sample[1].size(1));
    EXPECT_TRUE(at::equal(part, sample[1]));
    const int64_t padding = height * width - sample[1].numel();
    EXPECT_EQ(batch[1][i].eq(255).sum().item<int64_t>(), padding);
  }
}

TEST(ScribbleSet, WithoutTruthsThereIsNoValidation) {
  const VocTree tree;
  const auto config = tree.config(voc::ScribbleMode::kScribbleOnly);
  fs::remove_all(tree.folder() / "SegmentationClassAug");
  EXPECT_EQ(voc::open_scribble_sets(config).validation, nullptr);
  EXPECT_TRUE(
      contains(refusal<ConfigError>([&] { voc::open_whole_images(config); }),
               "SegmentationClassAug"));
}

TEST(ScribbleSet, ListsOfTwoColumnsAreRead) {
  const VocTree tree;
  tree.write(tree.list("train"),
             "/JPEGImages/t2.jpg /SegmentationClassAug/t2.png\n"
             "/JPEGImages/t0.jpg /SegmentationClassAug/t0.png\n");
  EXPECT_EQ(
      voc::open_scribble_sets(tree.config(voc::ScribbleMode::kScribbleOnly))
          .train->size(),
      2);
}

TEST(ScribbleSet, MissingDataIsNamedWithARemedy) {
  const VocTree tree;
  const auto failure = [](const voc::ScribbleDataConfig& config) {
    return refusal<ConfigError>([&] { voc::open_scribble_sets(config); });
  };
  const std::string text =
      failure(tree.config(voc::ScribbleMode::kScribblePseudoDsDc));
  EXPECT_TRUE(contains(text, "lockstep prepare scribble --dataset_path '"));
  EXPECT_TRUE(contains(text, "dsmp_lambd_e'")) << text;
  fs::remove(tree.pseudo("t1"));
  const std::string missing =
      failure(tree.config(voc::ScribbleMode::kScribblePseudo));
  EXPECT_TRUE(contains(missing, "1 of 3")) << missing;
  EXPECT_TRUE(contains(missing, "t1.png")) << missing;
  EXPECT_TRUE(contains(missing, "--pesudo_path")) << missing;
  EXPECT_TRUE(contains(failure({.dataset_path = "/nowhere"}), "ImageSets"));
  tree.write(tree.list("train"), "\n\n");
  EXPECT_TRUE(contains(failure(tree.config(voc::ScribbleMode::kScribbleOnly)),
                       "train.txt"));
  fs::remove(tree.list("train"));
  EXPECT_THROW(
      voc::open_scribble_sets(tree.config(voc::ScribbleMode::kScribbleOnly)),
      IoError);
}

TEST(ScribbleSet, WrongMapsAreNamedWhenTheyAreRead) {
  const VocTree tree;
  const auto train =
      voc::open_scribble_sets(tree.config(voc::ScribbleMode::kScribblePseudo))
          .train;
  const auto failure = [&train](int64_t index) {
    return refusal<FormatError>([&] { train->get(index, 0); });
  };
  data::write_png(tree.pseudo("t0"), data::make_image(5, 4, 1));
  EXPECT_TRUE(contains(failure(0), tree.pseudo("t0").string())) << failure(0);
  EXPECT_TRUE(contains(failure(0), "5 x 4")) << failure(0);
  data::Image labels = data::read_label_map(tree.scribble("t1"));
  labels.pixels[7] = 21;
  data::write_png(tree.scribble("t1"), labels);
  EXPECT_TRUE(contains(failure(1), "label 21")) << failure(1);
  EXPECT_TRUE(contains(failure(1), "--numclasses")) << failure(1);
}

TEST(ScribblePrepare, MakesBothKindsOfMaps) {
  const VocTree tree;
  const std::string text = tree.prepare();
  EXPECT_TRUE(contains(text, "Made 6 maps")) << text;
  EXPECT_TRUE(contains(text, "maps/s")) << text;
  EXPECT_EQ(data::read_label_map(tree.distances("t1")).pixels,
            voc::scribble_distance_map(
                data::read_label_map(tree.scribble("t1")), voc::kScribbleLambda)
                .pixels);
  EXPECT_EQ(data::read_label_map(tree.outlines("t2")).pixels,
            voc::outline_distance_map(data::read_label_map(tree.pseudo("t2")),
                                      voc::kOutlineLambda)
                .pixels);
}

TEST(ScribblePrepare, GoesOnWhereItWasStopped) {
  const VocTree tree;
  tree.prepare();
  fs::remove(tree.outlines("t0"));
  tree.write(tree.distances("t0"), "kept");
  // What a killed process leaves behind.
  tree.write(tree.outlines("t0").string() + ".partial.abcdef", "half");
  const std::string text = tree.prepare();
  EXPECT_TRUE(contains(text, "Made 1 maps")) << text;
  EXPECT_TRUE(contains(text, "5 were there")) << text;
  EXPECT_EQ(base::read_file(tree.distances("t0")), "kept");
  EXPECT_FALSE(fs::exists(tree.outlines("t0").string() + ".partial.abcdef"));
  tree.prepare({"--overwrite"});
  EXPECT_NE(base::read_file(tree.distances("t0")), "kept");
}

TEST(ScribblePrepare, RefusesWhatItCannotDo) {
  const VocTree tree;
  EXPECT_THROW(tree.prepare({"--lambda_s", "-1"}), ConfigError);
  EXPECT_THROW(tree.prepare({"more"}), ConfigError);
  EXPECT_TRUE(contains(tree.prepare({"--help"}), "--distancemap_c"));
  tree.write(tree.pseudo("t1"), "no image");
  EXPECT_TRUE(contains(refusal<FormatError>([&] { tree.prepare(); }),
                       tree.pseudo("t1").string()));
  fs::remove_all(tree.folder() / "bmp_ws_train_aug_dataset");
  EXPECT_TRUE(
      contains(refusal<ConfigError>([&] { tree.prepare(); }), "--pesudo_path"));
  EXPECT_TRUE(contains(tree.prepare({"--distancemap_c", "", "--overwrite"}),
                       "Made 3 maps"));
}

TEST(GeneratedScribbles, AreTheSameEveryTimeAndAgreeWithThemselves) {
  const auto source =
      voc::generated_scribbles(voc::ScribbleMode::kScribblePseudoDsDc);
  ASSERT_EQ(source->size(), voc::kGeneratedToTrain);
  int64_t num_labelled = 0;
  int64_t num_pixels = 0;
  int64_t num_mistakes = 0;
  std::array<int64_t, voc::kGeneratedClasses> marked = {};
  for (int64_t i = 0; i < source->size(); ++i) {
    const voc::LabelledImage item = source->read(i);
    EXPECT_EQ(item.image.pixels, source->read(i).image.pixels);
    for (size_t k = 0; k < item.labels.pixels.size(); ++k) {
      const uint8_t label = item.labels.pixels[k];
      ++num_pixels;
      if (label == data::kNoLabel) continue;
      ASSERT_LT(label, voc::kGeneratedClasses);
      ++num_labelled;
      ++marked[label];
      if (item.pseudo.pixels[k] != label) ++num_mistakes;
    }
  }
  // Scribbles are sparse, and pseudo labels are mostly right.
  EXPECT_LT(num_labelled, num_pixels / 10);
  EXPECT_GT(num_labelled, num_pixels / 100);
  EXPECT_GT(num_mistakes, 0);
  EXPECT_LT(num_mistakes, num_labelled / 10);
  for (const int64_t count : marked) EXPECT_GT(count, 500);
}

TEST(GeneratedScribbles, TruthsHaveEveryClass) {
  const auto source = voc::generated_truths();
  std::array<int64_t, voc::kGeneratedClasses> counts = {};
  for (int64_t i = 0; i < source->size(); ++i) {
    const data::Image labels = source->read(i).labels;
    for (const uint8_t label : labels.pixels) ++counts.at(label);
  }
  for (const int64_t count : counts) EXPECT_GT(count, 1000);
}

TEST(GeneratedScribbles, OpenLikeAFolder) {
  const voc::ScribbleDataConfig config{.dataset_path = voc::kBuiltinScribble,
                                       .augment = {.side = 65}};
  const voc::ScribbleSets sets = voc::open_scribble_sets(config);
  EXPECT_EQ(sets.train->get(3, 1)[4].size(0), 65);
  EXPECT_EQ(sets.validation->size(), voc::kGeneratedToValidate);
  EXPECT_EQ(voc::open_whole_images(config)->name(0), "val_0000");
  EXPECT_THROW(voc::open_scribble_sets(
                   {.dataset_path = voc::kBuiltinScribble, .num_classes = 3}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
