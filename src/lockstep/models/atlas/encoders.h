// The pretrained encoders of atlas: VGGT for images, LLaMA for sentences.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/models/atlas/geometry_encoder.h"
#include "lockstep/models/atlas/language.h"
#include "lockstep/models/atlas/vision.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::atlas {

struct EncoderSettings {
  std::string vggt_checkpoint = "facebook/VGGT-1B";
  std::string lang_encoder_name = "meta-llama/Meta-Llama-3-8B";
  // auto: VGGT in bf16 on a GPU, else fp32; LLaMA as in its file.
  std::string encoder_precision = "auto";
  // Precision of points, the bulk of a feature cache.
  std::string point_precision = "fp32";
  // Uses every n-th row and column of the point map.
  int64_t point_stride = 1;
  int64_t image_size = 518;
  int64_t max_tokens = 128;
  bool use_pointnet = true;
  bool use_pose = true;
  bool freeze_vggt = true;
  bool freeze_lang_encoder = true;
  std::filesystem::path notes = {};  // Where hashes of files are cached.
};

// Throws ConfigError, which names the settings.
void check_encoder_settings(const EncoderSettings& settings);

// Not thread-safe, except tokenize().
class Encoders {
 public:
  // Opens both, on the CPU; weights are loaded on first use.
  explicit Encoders(const EncoderSettings& settings);

  // Call it before the first use of weights.
  void move_to(at::Device device);

  int64_t token_size() const { return vision_->token_size(); }
  int64_t language_size() const { return language_->hidden_size(); }
  int64_t padding() const { return language_->padding(); }
  std::vector<int64_t> tokenize(std::string_view sentence) const {
    return language_->tokenize(sentence);
  }

  // images uint8 [B, S, 3, H, W], on the device. With gradients if VGGT is
  // trained.
  ViewFeatures see(const at::Tensor& images);

  // ids int64 [B, T], mask bool [B, T] -> [B, T, language size]
  at::Tensor read(const at::Tensor& ids, const at::Tensor& mask);

  // Cache keys: everything that features of an image or a sentence depend on
  // besides the input itself. Valid after move_to().
  std::string image_key() const;
  std::string sentence_key() const;

  // Hashes of the weights that are not trained, by name.
  std::vector<std::pair<std::string, std::string>> frozen() const;

  // The trained encoders, with their weights; null if frozen.
  std::shared_ptr<torch::nn::Module> trained_vision();
  std::shared_ptr<torch::nn::Module> trained_language();

 private:
  void open(at::Device device);

  EncoderSettings settings_;
  at::Device device_ = at::kCPU;
  std::unique_ptr<VisionEncoder> vision_;
  std::unique_ptr<LanguageEncoder> language_;
  std::shared_ptr<vggt::Vggt> trained_vision_;
  std::shared_ptr<llama::Llama> trained_language_;
};

}  // namespace lockstep::atlas
