#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/datasets/episodes/feature_cache.h"
#include "lockstep/datasets/episodes/feature_file.h"
#include "lockstep/datasets/episodes/feature_work.h"
#include "lockstep/datasets/episodes/frame_set.h"
#include "lockstep/datasets/episodes/reach.h"
#include "lockstep/error.h"
#include "lockstep/models/atlas/encoders.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using torch::Tensor;

atlas::EncoderSettings tiny_encoders() {
  return {.vggt_checkpoint = "vggt_tiny",
          .lang_encoder_name = "llama_tiny",
          .image_size = vggt::vggt_preset("vggt_tiny").image_size};
}

void flip_byte(const fs::path& path, int64_t from_end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-from_end, std::ios::end);
  const int byte = file.get();
  file.seekp(-from_end, std::ios::end);
  file.put(static_cast<char>(byte ^ 1));
}

TEST(FeatureFile, GivesRowsBack) {
  const TempDir temp;
  const fs::path path = temp.path() / "a.safetensors";
  const Tensor points = torch::randn({3, 2, 5}).to(torch::kBFloat16);
  episodes::write_features(path,
                           {{"points", points}, {"pose", torch::ones({3, 2})}});
  EXPECT_TRUE(episodes::is_whole_feature_file(path));
  const episodes::FeatureFile file(path);
  EXPECT_TRUE(torch::equal(file.row("points", 1), points[1]));
  EXPECT_TRUE(torch::equal(file.all("points"), points));
  EXPECT_TRUE(file.has("pose"));
  EXPECT_FALSE(file.has("tokens"));
}

TEST(FeatureFile, DamageIsSeen) {
  const TempDir temp;
  const fs::path path = temp.path() / "a.safetensors";
  EXPECT_FALSE(episodes::is_whole_feature_file(path));
  const Tensor tokens = torch::randn({40});
  const auto write = [&] {
    episodes::write_features(path, {{"tokens", tokens}});
  };
  write();
  const int64_t size = static_cast<int64_t>(fs::file_size(path));
  // Every byte of the numbers, and some of the header.
  for (int64_t at = 1; at < size; at += 7) {
    write();
    flip_byte(path, at);
    if (!episodes::is_whole_feature_file(path)) continue;
    // What was hit is a space or a name of the header, and no number.
    const episodes::FeatureFile file(path);
    EXPECT_TRUE(!file.has("tokens") || torch::equal(file.all("tokens"), tokens))
        << at;
  }
  write();
  fs::resize_file(path, fs::file_size(path) - 3);
  EXPECT_FALSE(episodes::is_whole_feature_file(path));
}

TEST(FrameSource, BuiltinEpisodesHaveOthersToValidate) {
  const episodes::FrameSources sources =
      episodes::open_frames({.data_dir = "builtin:reach:8", .image_size = 28});
  EXPECT_EQ(sources.train->num_episodes(), 8);
  EXPECT_EQ(sources.validation->num_episodes(), 2);
  EXPECT_NE(sources.train->fingerprint(0), sources.train->fingerprint(1));
  EXPECT_NE(sources.train->fingerprint(0), sources.validation->fingerprint(0));
}

TEST(FrameSource, WithoutAFolderToValidateEpisodesAreHeldBack) {
  const TempDir temp;
  episodes::write_reach(
      episodes::ReachTask(
          {.num_episodes = 20, .num_frames = 2, .image_size = 8}),
      temp.path());
  episodes::FrameConfig config{
      .data_dir = temp.path(), .val_fraction = 0.3, .image_size = 8};
  episodes::FrameSources sources = episodes::open_frames(config);
  ASSERT_NE(sources.validation, nullptr);
  const int64_t held_back = sources.validation->num_episodes();
  EXPECT_GT(held_back, 0);
  EXPECT_EQ(sources.train->num_episodes() + held_back, 20);
  config.val_split = "";
  sources = episodes::open_frames(config);
  EXPECT_EQ(sources.validation, nullptr);
  EXPECT_EQ(sources.train->num_episodes(), 20);
  config.val_split = "test";
  EXPECT_THROW(episodes::open_frames(config), ConfigError);
}

TEST(FrameSource, AChangedImageHasAnotherFingerprint) {
  const TempDir temp;
  episodes::write_reach(
      episodes::ReachTask(
          {.num_episodes = 2, .num_frames = 2, .image_size = 8}),
      temp.path());
  const episodes::FrameConfig config{
      .data_dir = temp.path(), .val_split = "", .image_size = 8};
  const auto source = episodes::open_frames(config).train;
  const std::vector<std::string> before = {source->fingerprint(0),
                                           source->fingerprint(1)};
  for (const auto& entry : fs::recursive_directory_iterator(temp.path())) {
    if (entry.path().filename().string().starts_with("wrist") &&
        entry.path().string().find("episode_000") != std::string::npos) {
      std::ofstream(entry.path(), std::ios::app) << "x";
      break;
    }
  }
  const auto after = episodes::open_frames(config).train;
  EXPECT_NE(before[0], after->fingerprint(0));
  EXPECT_EQ(before[1], after->fingerprint(1));
}

struct Prepared {
  std::shared_ptr<atlas::Encoders> encoders;
  std::shared_ptr<episodes::CachedFrames> frames;
  std::shared_ptr<episodes::FeatureCache> cache;

  Prepared(const fs::path& folder, const atlas::EncoderSettings& settings) {
    encoders = std::make_shared<atlas::Encoders>(settings);
    const auto sources = episodes::open_frames(
        {.data_dir = "builtin:reach:3",
         .image_size = static_cast<int>(settings.image_size)});
    frames = std::make_shared<episodes::CachedFrames>(episodes::FrameSetConfig{
        .source = sources.train, .encoders = encoders});
    cache = std::make_shared<episodes::FeatureCache>(
        folder, episodes::FeatureKeys{.images = encoders->image_key(),
                                      .sentences = encoders->sentence_key()});
    frames->use(cache);
  }

  // How many entries were missing.
  int64_t fill(const Shard& share = {}) {
    episodes::FeatureWork work({.encoders = encoders,
                                .cache = cache,
                                .sets = {frames},
                                .batch_size = 3},
                               share);
    for (;;) {
      const CacheProgress now = work.step();
      if (now.done == now.total) return now.total;
    }
  }
};

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") {
      found.push_back(entry.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

TEST(FeatureCache, CachedFeaturesAreThoseOfTheNets) {
  const TempDir temp;
  Prepared ready(temp.path(), tiny_encoders());
  EXPECT_GT(ready.fill(), 3);
  EXPECT_EQ(ready.fill(), 0);
  const Sample sample = ready.frames->get(9, 0);
  const episodes::ImageFrames images(
      {.source = episodes::open_frames({.data_dir = "builtin:reach:3",
                                        .image_size = static_cast<int>(
                                            tiny_encoders().image_size)})
                     .train,
       .encoders = ready.encoders});
  const Sample raw = images.get(9, 0);
  const atlas::ViewFeatures seen = ready.encoders->see(raw[0].unsqueeze(0));
  EXPECT_TRUE(
      torch::allclose(sample[episodes::kTokens], seen.tokens[0], 1e-4, 1e-5));
  EXPECT_TRUE(
      torch::allclose(sample[episodes::kPose], seen.pose[0], 1e-4, 1e-5));
  EXPECT_TRUE(
      torch::allclose(sample[episodes::kPoints], seen.points[0], 1e-4, 1e-5));
  const Tensor hidden = ready.encoders->read(
      raw[1].unsqueeze(0), torch::ones({1, raw[1].size(0)}, torch::kBool));
  EXPECT_TRUE(
      torch::allclose(sample[episodes::kLanguage], hidden[0], 1e-4, 1e-5));
  EXPECT_TRUE(torch::equal(sample[episodes::kLanguage + 1], raw[2]));
}

TEST(FeatureCache, OneViewIsNotTakenForTwo) {
  const auto encoders = std::make_shared<atlas::Encoders>(tiny_encoders());
  const auto source =
      episodes::open_frames({.data_dir = "builtin:reach:1", .image_size = 28})
          .train;
  const episodes::CachedFrames two({.source = source, .encoders = encoders});
  const episodes::CachedFrames one(
      {.source = source, .encoders = encoders, .use_wrist_camera = false});
  EXPECT_NE(one.fingerprint(0), two.fingerprint(0));
}

TEST(FeatureCache, RanksMakeTheirSharesOnly) {
  const TempDir temp;
  Prepared ready(temp.path(), tiny_encoders());
  const int64_t first = ready.fill({.rank = 0, .size = 2});
  const int64_t second = ready.fill({.rank = 1, .size = 2});
  EXPECT_GT(first, 0);
  EXPECT_GT(second, 0);
  EXPECT_EQ(ready.fill(), 0);
  EXPECT_EQ(std::ssize(entries(temp.path())), first + second);
}

TEST(FeatureCache, DamagedAndMissingEntriesAreMadeAgain) {
  const TempDir temp;
  Prepared ready(temp.path(), tiny_encoders());
  const int64_t all = ready.fill();
  auto files = entries(temp.path());
  ASSERT_EQ(std::ssize(files), all);
  const std::string whole = base::read_file(files[0]);
  flip_byte(files[0], 10);
  fs::remove(files[1]);
  EXPECT_EQ(ready.fill(), 2);
  EXPECT_EQ(base::read_file(files[0]), whole);
}

TEST(FeatureCache, OtherSettingsAndWeightsHaveOtherKeys) {
  const atlas::EncoderSettings usual = tiny_encoders();
  const atlas::Encoders encoders(usual);
  const auto key_of = [&](auto change) {
    atlas::EncoderSettings settings = usual;
    change(settings);
    return atlas::Encoders(settings).image_key();
  };
  EXPECT_EQ(encoders.image_key(), key_of([](atlas::EncoderSettings&) {}));
  EXPECT_NE(encoders.image_key(),
            key_of([](atlas::EncoderSettings& s) { s.point_stride = 2; }));
  EXPECT_NE(encoders.image_key(), key_of([](atlas::EncoderSettings& s) {
              s.encoder_precision = "bf16";
            }));
  EXPECT_NE(encoders.image_key(),
            key_of([](atlas::EncoderSettings& s) { s.image_size *= 2; }));
  EXPECT_NE(encoders.image_key(),
            key_of([](atlas::EncoderSettings& s) { s.use_pointnet = false; }));
}

// The weights of vggt_tiny as a file of their own.
void write_tiny_weights(const fs::path& path, double factor) {
  atlas::VisionEncoder encoder({.model = "vggt_tiny"});
  const auto model = encoder.model();
  Tree tree = Tree::dict();
  for (const auto& item : model->named_parameters()) {
    tree[item.key()] = item.value().detach() * factor;
  }
  for (const auto& item : model->named_buffers()) {
    tree[item.key()] = item.value().detach().clone();
  }
  tree["track_head.weight"] = torch::ones({2});
  save_safetensors(path, tree);
}

TEST(VisionEncoder, TakesWeightsOfAFileAndItsSizes) {
  const TempDir temp;
  const fs::path file = temp.path() / "model.safetensors";
  write_tiny_weights(file, 1);
  atlas::VisionEncoder from_file({.model = file.string()});
  atlas::VisionEncoder preset({.model = "vggt_tiny"});
  EXPECT_EQ(from_file.sizes().width, preset.sizes().width);
  EXPECT_EQ(from_file.sizes().image_size, preset.sizes().image_size);
  EXPECT_EQ(from_file.sizes().depth, preset.sizes().depth);
  EXPECT_EQ(from_file.sizes().num_heads, preset.sizes().num_heads);
  EXPECT_EQ(from_file.sizes().dpt_outs, preset.sizes().dpt_outs);
  const int64_t side = preset.sizes().image_size;
  const Tensor images = torch::rand({1, 2, 3, side, side});
  const vggt::VggtGeometry ours = from_file.encode(images);
  const vggt::VggtGeometry theirs = preset.encode(images);
  EXPECT_TRUE(torch::allclose(ours.tokens, theirs.tokens));
  EXPECT_TRUE(torch::allclose(ours.pose, theirs.pose));
}

TEST(VisionEncoder, AChangedWeightMissesTheCache) {
  const TempDir temp;
  atlas::EncoderSettings settings = tiny_encoders();
  settings.vggt_checkpoint = (temp.path() / "model.safetensors").string();
  settings.notes = temp.path() / "notes";
  write_tiny_weights(settings.vggt_checkpoint, 1);
  Prepared first(temp.path() / "cache", settings);
  EXPECT_GT(first.fill(), 0);
  EXPECT_EQ(Prepared(temp.path() / "cache", settings).fill(), 0);
  write_tiny_weights(settings.vggt_checkpoint, 1.001);
  Prepared second(temp.path() / "cache", settings);
  // Three episodes; sentences depend on LLaMA alone.
  EXPECT_EQ(second.fill(), 3);
}

TEST(VisionEncoder, OtherFilesAreRefused) {
  const TempDir temp;
  const fs::path file = temp.path() / "other.safetensors";
  Tree tree = Tree::dict();
  tree["weight"] = torch::ones({2});
  save_safetensors(file, tree);
  try {
    atlas::VisionEncoder encoder({.model = file.string()});
    FAIL() << "taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("other.safetensors"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
