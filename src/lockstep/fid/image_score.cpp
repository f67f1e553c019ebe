#include "lockstep/fid/image_score.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/divide.h"
#include "lockstep/error.h"
#include "lockstep/fid/feature_net.h"
#include "lockstep/fid/frechet.h"
#include "lockstep/fid/statistics_file.h"
#include "lockstep/loader.h"
#include "lockstep/settings.h"

namespace lockstep {
namespace {

// Images of the reference that identify it.
constexpr int64_t kImagesToTell = 64;

fid::FeatureStatistics statistics_of_all(fid::FeatureSums sums,
                                         const World& world) {
  world.all_reduce(sums.sum);
  world.all_reduce(sums.outer);
  sums.count = world.reduce(sums.count, ReduceOp::kSum);
  return fid::statistics_of(sums);
}

}  // namespace

void describe_score(Settings& settings) {
  Options& options = settings.options;
  ScoreConfig& score = settings.common.score;
  const std::string group = "Score";
  options.add("fid_every", score.every,
              "optimizer steps between scores (FID) of generated images; "
              "unset: none",
              {.minimum = 1, .group = group});
  options.add("num_fid_samples", score.num_images,
              "images to generate for a score",
              {.aliases = {"num_images"}, .minimum = 2, .group = group});
  options.add("fid_weights", score.weights,
              "Inception's weights, the file that pytorch-fid uses; without it "
              "the score is fd_builtin, by a small built-in network",
              {.group = group});
  options.add("fid_convention", score.convention,
              "how images become Inception's input",
              {.choices = {"pytorch-fid", "torch-fidelity"}, .group = group});
  options.add("fid_stats", score.statistics,
              "statistics of the real images (.npz); unset: those of the "
              "training data",
              {.group = group});
}

std::string fid::score_note(const ScoreConfig& score) {
  if (!score.weights.empty()) return "";
  return "no --fid_weights: generated images are scored as fd_builtin, by a "
         "small built-in network; it is not comparable to FID";
}

fid::ImageScore::ImageScore(const World& world, fid::ImageScoreConfig config)
    : world_(world), config_(std::move(config)) {
  net_ = fid::make_feature_net({.weights = config_.score.weights,
                                .convention = config_.score.convention});
  net_->to(world.device());
  if (config_.score.statistics.empty()) {
    LOCKSTEP_CHECK(config_.reference != nullptr,
                   "images are scored against none");
    return;
  }
  world.run_on_rank0_and_broadcast([&] {
    reference_ = std::make_unique<fid::FeatureStatistics>(
        fid::read_statistics(config_.score.statistics, *net_));
  });
  has_reference_ = true;
}

fid::ImageScore::~ImageScore() = default;

std::string fid::ImageScore::name() const { return net_->name(); }

std::filesystem::path fid::ImageScore::cache() const {
  return config_.folder / "results" / "dataset_stats.npz";
}

// Hashes images from all over the data: reading all would take as long as the
// statistics.
std::string fid::ImageScore::fingerprint() const {
  const int64_t size = config_.reference->size();
  const int64_t count = std::min(kImagesToTell, size);
  std::vector<at::Tensor> images;
  for (int64_t i = 0; i < count; ++i) {
    images.push_back(config_.reference->get(i * size / count, 0).at(0));
  }
  return fid::fingerprint_of(images);
}

// What an earlier score has left; of other data or features it is of no use.
bool fid::ImageScore::load_reference() {
  if (config_.folder.empty() || config_.max_reference ||
      !std::filesystem::exists(cache())) {
    return false;
  }
  try {
    const fid::FeatureStatistics kept = fid::read_statistics(cache(), *net_);
    if (kept.count != config_.reference->size() ||
        fid::statistics_data(cache()) != fingerprint()) {
      return false;
    }
    reference_ = std::make_unique<fid::FeatureStatistics>(kept);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A full disk costs time the next time, and no training.
void fid::ImageScore::keep_reference() const {
  if (config_.folder.empty() || config_.max_reference) return;
  try {
    std::filesystem::create_directories(cache().parent_path());
    fid::write_statistics(cache(), *reference_, *net_, fingerprint());
  } catch (const IoError&) {
  } catch (const std::filesystem::filesystem_error&) {
  }
}

bool fid::ImageScore::find_reference(const engine::GoOn& go_on) {
  if (has_reference_) return true;
  has_reference_ = world_.run_on_rank0_and_broadcast(
                       [&] { return load_reference() ? 1 : 0; }) != 0;
  if (has_reference_) return true;
  const int64_t size =
      std::min(config_.max_reference.value_or(config_.reference->size()),
               config_.reference->size());
  const Loader loader(config_.reference, world_,
                      {.batch_size = config_.batch_size,
                       .workers = config_.workers,
                       .seed = config_.seed,
                       .shuffle = false,
                       .uneven = Uneven::kExact});
  const int64_t total =
      base::divide_up(base::divide_up(size, world_.size()), config_.batch_size);
  fid::FeatureSums sums = fid::empty_sums(net_->width(), world_.device());
  Batches batches = loader.epoch(0);
  for (int64_t done = 0; done < total; ++done) {
    if (!go_on(done, total)) return false;
    const auto batch = batches.next();
    if (batch) fid::add_features(sums, net_->features((*batch)[0]));
  }
  const fid::FeatureStatistics all = statistics_of_all(sums, world_);
  world_.run_on_rank0_and_broadcast([&] {
    reference_ = std::make_unique<fid::FeatureStatistics>(all);
    keep_reference();
  });
  has_reference_ = true;
  return true;
}

std::optional<double> fid::ImageScore::measure(ImageScoring& scoring,
                                               engine::Learner& learner,
                                               const Ema* average,
                                               const engine::GoOn& go_on) {
  const engine::Learner::Inference inference(learner);
  if (!find_reference(go_on)) return std::nullopt;
  fid::FeatureSums sums = fid::empty_sums(net_->width(), world_.device());
  const auto make = [&](const std::vector<int64_t>& items,
                        SampleRandom& random) {
    // Those beyond the number come last and do not count.
    const auto count = std::ranges::count_if(
        items, [&](int64_t item) { return item < config_.num_images; });
    const at::Tensor images = scoring.generate(items, random);
    fid::add_features(sums, net_->features(images.slice(0, 0, count)));
  };
  if (!engine::make_own_items(world_,
                              {.num_items = config_.num_images,
                               .batch_size = config_.batch_size,
                               .seed = config_.seed,
                               .average = average},
                              make, go_on)) {
    return std::nullopt;
  }
  const fid::FeatureStatistics made = statistics_of_all(sums, world_);
  return world_.run_on_rank0_and_broadcast(
      [&] { return fid::frechet_distance(made, *reference_); });
}

}  // namespace lockstep
