#include "lockstep/models/atlas/vision.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/error.h"
#include "lockstep/models/atlas/hub.h"
#include "lockstep/models/vggt/frozen.h"
#include "lockstep/nn/weights.h"

namespace lockstep::atlas {
namespace {

constexpr const char* kTinyVggt = "vggt_tiny";
constexpr uint64_t kTinyVggtSeed = 20'250'314;
constexpr const char* kAggregator = "aggregator.";
constexpr const char* kTrackHead = "track_head.";

// Reads shapes by name and remembers what is missing.
class KnownShapes {
 public:
  explicit KnownShapes(const checkpoint::WeightFiles& files) : files_(files) {}

  int64_t side(const std::string& name, size_t dimension) const {
    if (!files_.has(name)) refuse(name);
    const auto shape = files_.facts(name).shape;
    if (dimension >= shape.size()) refuse(name);
    return shape[dimension];
  }

  // How many of prefix0., prefix1., ... there are.
  int64_t count(const std::string& prefix, const std::string& name) const {
    int64_t number = 0;
    while (files_.has(fmt::format("{}{}.{}", prefix, number, name))) ++number;
    if (number == 0) refuse(prefix + "0." + name);
    return number;
  }

 private:
  [[noreturn]] void refuse(const std::string& name) const {
    throw ConfigError(
        fmt::format("{} is not a VGGT: it has no {} of the expected shape; "
                    "vggt_checkpoint takes the published weights "
                    "(facebook/VGGT-1B), others of their kind, or vggt_tiny",
                    files_.path().string(), name));
  }

  const checkpoint::WeightFiles& files_;
};

// The four layers used by the dense heads, at the same fractions of the depth.
std::array<int64_t, 4> dpt_layers_of(int64_t depth) {
  const vggt::VggtConfig published;
  std::array<int64_t, 4> layers{};
  for (size_t i = 0; i < layers.size(); ++i) {
    const double part = static_cast<double>(published.dpt_layers[i] + 1) /
                        static_cast<double>(published.depth);
    layers[i] = std::max<int64_t>(
        0, std::llround(part * static_cast<double>(depth)) - 1);
  }
  return layers;
}

// Converts one part of the model; the rest is unchanged.
void fill_part(vggt::Vggt& model, const checkpoint::WeightFiles& files,
               checkpoint::FillConfig fill, bool is_aggregator) {
  const auto belongs = [is_aggregator](const std::string& name) {
    return name.starts_with(kAggregator) == is_aggregator;
  };
  fill.name_in_file =
      [belongs](const std::string& name) -> std::optional<std::string> {
    if (!belongs(name)) return std::nullopt;
    return name;
  };
  for (const std::string& name : files.names()) {
    if (!belongs(name)) fill.ignored_prefixes.push_back(name);
  }
  fill.ignored_prefixes.push_back(kTrackHead);
  checkpoint::fill_module(model, files, fill);
}

}  // namespace

vggt::VggtConfig vggt_config_of(const checkpoint::WeightFiles& files) {
  const KnownShapes shapes(files);
  const std::string vit = "aggregator.patch_embed.";
  vggt::VggtConfig config;
  config.width = shapes.side(vit + "cls_token", 2);
  config.patch = shapes.side(vit + "patch_embed.proj.weight", 2);
  const auto positions =
      static_cast<double>(shapes.side(vit + "pos_embed", 1) - 1);
  config.image_size = std::llround(std::sqrt(positions)) * config.patch;
  config.vit_depth = shapes.count(vit + "blocks.", "norm1.weight");
  config.depth = shapes.count("aggregator.frame_blocks.", "norm1.weight");
  const int64_t head_size =
      shapes.side("aggregator.frame_blocks.0.attn.q_norm.weight", 0);
  config.num_heads = config.width / std::max<int64_t>(1, head_size);
  config.num_registers = shapes.side("aggregator.register_token", 2);
  config.camera_depth = shapes.count("camera_head.trunk.", "norm1.weight");
  for (size_t i = 0; i < config.dpt_outs.size(); ++i) {
    config.dpt_outs[i] =
        shapes.side(fmt::format("point_head.projects.{}.weight", i), 0);
  }
  config.dpt_features = shapes.side("point_head.scratch.layer1_rn.weight", 0);
  config.dpt_hidden =
      shapes.side("point_head.scratch.output_conv2.0.weight", 0);
  config.dpt_layers = dpt_layers_of(config.depth);
  vggt::check_vggt_config(config);
  return config;
}

VisionEncoder::VisionEncoder(const VisionConfig& config,
                             const base::Environment& environment)
    : config_(config) {
  if (config.model == kTinyVggt) {
    model_ = std::make_shared<vggt::Vggt>(vggt::vggt_preset(kTinyVggt));
  } else {
    files_ = std::make_unique<checkpoint::WeightFiles>(
        find_model(config.model, config.setting, environment));
    model_ = std::make_shared<vggt::Vggt>(vggt_config_of(*files_));
  }
  model_->eval();
}

VisionEncoder::~VisionEncoder() = default;

void VisionEncoder::load() {
  if (is_loaded_) return;
  // Weights outlive this pass, which may run in inference mode.
  const c10::InferenceMode with_gradients(false);
  if (files_ == nullptr) {
    nn::materialize(*model_,
                    at::TensorOptions(config_.device).dtype(at::kFloat));
    nn::fill_randomly(*model_, kTinyVggtSeed);
    model_->aggregator()->to(config_.precision);
  } else {
    checkpoint::FillConfig fill{.device = config_.device,
                                .dtype = config_.precision};
    fill_part(*model_, *files_, fill, /*is_aggregator=*/true);
    fill.dtype = at::kFloat;
    fill_part(*model_, *files_, fill, /*is_aggregator=*/false);
  }
  is_loaded_ = true;
}

std::shared_ptr<vggt::Vggt> VisionEncoder::model() {
  load();
  return model_;
}

vggt::VggtGeometry VisionEncoder::encode(const at::Tensor& images) {
  load();
  if (frozen_ == nullptr) {
    frozen_ = std::make_unique<vggt::FrozenVggt>(model_, config_.wants);
  }
  return frozen_->forward(images);
}

std::string VisionEncoder::weights_hash() const {
  return files_ == nullptr ? fmt::format("{} {}", config_.model, kTinyVggtSeed)
                           : files_->content_hash(config_.notes);
}

}  // namespace lockstep::atlas
