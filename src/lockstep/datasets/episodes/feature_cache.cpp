#include "lockstep/datasets/episodes/feature_cache.h"

#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/datasets/episodes/feature_file.h"
#include "lockstep/formats/sha256.h"

namespace lockstep::episodes {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeyLength = 16;
constexpr const char* kHidden = "hidden";

fs::path entry(const fs::path& folder, const std::string& kind,
               const std::string& key, const std::string& name) {
  return folder / (kind + "-" + key.substr(0, kKeyLength)) /
         (name + ".safetensors");
}

void write(const fs::path& path, const NamedFeatures& features) {
  base::make_output_folder(path.parent_path());
  write_features(path, features);
}

}  // namespace

FeatureCache::FeatureCache(fs::path folder, const FeatureKeys& keys)
    : folder_(std::move(folder)), keys_(keys) {
  base::remove_leftovers(episode_path("").parent_path());
  base::remove_leftovers(sentence_path("").parent_path());
}

fs::path FeatureCache::episode_path(const std::string& fingerprint) const {
  return entry(folder_, "images", keys_.images, fingerprint);
}

fs::path FeatureCache::sentence_path(const std::string& sentence) const {
  return entry(folder_, "sentences", keys_.sentences,
               formats::sha256_of(sentence));
}

bool FeatureCache::has_episode(const std::string& fingerprint) const {
  return is_whole_feature_file(episode_path(fingerprint));
}

bool FeatureCache::has_sentence(const std::string& sentence) const {
  return is_whole_feature_file(sentence_path(sentence));
}

void FeatureCache::put_episode(const std::string& fingerprint,
                               const atlas::ViewFeatures& frames) {
  NamedFeatures features = {{"tokens", frames.tokens}};
  if (frames.pose.defined()) features.emplace_back("pose", frames.pose);
  if (frames.points.defined()) features.emplace_back("points", frames.points);
  write(episode_path(fingerprint), features);
}

void FeatureCache::put_sentence(const std::string& sentence,
                                const at::Tensor& hidden) {
  write(sentence_path(sentence), {{kHidden, hidden}});
}

atlas::ViewFeatures FeatureCache::frame(const std::string& fingerprint,
                                        int64_t frame) const {
  const FeatureFile file(episode_path(fingerprint));
  atlas::ViewFeatures views{.tokens = file.row("tokens", frame)};
  if (file.has("pose")) views.pose = file.row("pose", frame);
  if (file.has("points")) views.points = file.row("points", frame);
  return views;
}

at::Tensor FeatureCache::sentence(const std::string& sentence) const {
  return FeatureFile(sentence_path(sentence)).all(kHidden);
}

}  // namespace lockstep::episodes
