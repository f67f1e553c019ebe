// Features of images, by VGGT.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/models/vggt/vggt.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::checkpoint {
class WeightFiles;
}  // namespace lockstep::checkpoint

namespace lockstep::vggt {
class FrozenVggt;
}  // namespace lockstep::vggt

namespace lockstep::atlas {

struct VisionConfig {
  // "vggt_tiny": a small model of fixed random weights; or a file or folder of
  // weights, whose shapes give the sizes; or a Hugging Face hub name.
  std::string model = "vggt_tiny";
  std::string setting = "vggt_checkpoint";  // Setting to name in errors.
  at::Device device = at::kCPU;
  // Precision of the aggregator; heads are always float32.
  at::ScalarType precision = at::kFloat;
  vggt::VggtWants wants = {};
  // Where hashes of large files are cached; empty: nowhere.
  std::filesystem::path notes = {};
};

// The sizes of a model from the shapes of its weights. Throws ConfigError if
// they are not those of a VGGT.
vggt::VggtConfig vggt_config_of(const checkpoint::WeightFiles& files);

// Not thread-safe.
class VisionEncoder {
 public:
  // Reads sizes only; weights are loaded on first use. Throws ConfigError,
  // FormatError and IoError.
  explicit VisionEncoder(
      const VisionConfig& config,
      const base::Environment& environment = base::process_environment());
  ~VisionEncoder();

  const vggt::VggtConfig& sizes() const { return model_->config(); }
  int64_t token_size() const { return 2 * sizes().width; }

  // The model with its weights, for training.
  std::shared_ptr<vggt::Vggt> model();

  // images [B, S, 3, H, W], 0 .. 1. Without gradients.
  vggt::VggtGeometry encode(const at::Tensor& images);

  // Hash of the weights, independent of precision.
  std::string weights_hash() const;

 private:
  void load();

  VisionConfig config_;
  std::shared_ptr<vggt::Vggt> model_;
  std::unique_ptr<checkpoint::WeightFiles> files_;  // Null for presets.
  std::unique_ptr<vggt::FrozenVggt> frozen_;        // Created by encode().
  bool is_loaded_ = false;
};

}  // namespace lockstep::atlas
