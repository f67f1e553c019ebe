// Features of frozen encoders for frames and sentences, computed once and
// reused by all runs.
//
//   {folder}/images-{key}/{fingerprint of the episode}.safetensors
//   {folder}/sentences-{key}/{hash of the sentence}.safetensors
//
// The keys stand for all that features depend on besides their input: other
// weights, sizes or precisions have other folders. Nothing is ever stale.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lockstep/models/atlas/geometry_encoder.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::episodes {

struct FeatureKeys {
  std::string images = {};
  std::string sentences = {};
};

// Safe to use from several threads and processes at once: files are written
// whole, by one of them each.
class FeatureCache {
 public:
  // Removes what a killed process left half-written.
  FeatureCache(std::filesystem::path folder, const FeatureKeys& keys);

  // Reads all of the entry: one that is damaged counts as missing.
  bool has_episode(const std::string& fingerprint) const;
  bool has_sentence(const std::string& sentence) const;

  // Tensors of all frames of an episode, on the CPU: [frames, S, ...].
  void put_episode(const std::string& fingerprint,
                   const atlas::ViewFeatures& frames);
  void put_sentence(const std::string& sentence, const at::Tensor& hidden);

  // For one frame: [S, ...]. Throws IoError and FormatError.
  atlas::ViewFeatures frame(const std::string& fingerprint,
                            int64_t frame) const;
  at::Tensor sentence(const std::string& sentence) const;  // [T, size]

 private:
  std::filesystem::path episode_path(const std::string& fingerprint) const;
  std::filesystem::path sentence_path(const std::string& sentence) const;

  std::filesystem::path folder_;
  FeatureKeys keys_;
};

}  // namespace lockstep::episodes
