#include "lockstep/models/atlas/encoders.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "lockstep/error.h"
#include "lockstep/formats/sha256.h"

namespace lockstep::atlas {
namespace {

constexpr double kMaxHalf = 65'504;
// Increment when the same weights give different features.
constexpr int kImageVersion = 2;
constexpr int kSentenceVersion = 1;

std::optional<at::ScalarType> type_of(const std::string& precision) {
  if (precision == "fp32") return at::kFloat;
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  return std::nullopt;
}

at::ScalarType vision_type(const EncoderSettings& settings, at::Device device) {
  // A trained encoder stays in float32.
  if (!settings.freeze_vggt) return at::kFloat;
  return type_of(settings.encoder_precision)
      .value_or(device.is_cuda() ? at::kBFloat16 : at::kFloat);
}

std::optional<at::ScalarType> language_type(const EncoderSettings& settings) {
  if (!settings.freeze_lang_encoder) return at::kFloat;
  return type_of(settings.encoder_precision);
}

}  // namespace

void check_encoder_settings(const EncoderSettings& settings) {
  if (settings.point_stride > settings.image_size) {
    throw ConfigError(
        fmt::format("point_stride {} leaves no point of an image of {} pixels",
                    settings.point_stride, settings.image_size));
  }
}

Encoders::Encoders(const EncoderSettings& settings) : settings_(settings) {
  check_encoder_settings(settings);
  open(at::kCPU);
  const int64_t patch = vision_->sizes().patch;
  if (settings.image_size % patch != 0) {
    throw ConfigError(
        fmt::format("image_size {} is not a multiple of VGGT's patch of {} "
                    "pixels; set it to "
                    "one, such as {}",
                    settings.image_size, patch, vision_->sizes().image_size));
  }
}

void Encoders::open(at::Device device) {
  device_ = device;
  vision_ = std::make_unique<VisionEncoder>(VisionConfig{
      .model = settings_.vggt_checkpoint,
      .device = device,
      .precision = vision_type(settings_, device),
      .wants = {.points = settings_.use_pointnet, .pose = settings_.use_pose},
      .notes = settings_.notes});
  language_ = std::make_unique<LanguageEncoder>(
      LanguageConfig{.model = settings_.lang_encoder_name,
                     .device = device,
                     .precision = language_type(settings_),
                     .max_tokens = settings_.max_tokens,
                     .notes = settings_.notes});
}

void Encoders::move_to(at::Device device) { open(device); }

ViewFeatures Encoders::see(const at::Tensor& images) {
  const at::Tensor scaled = images.to(at::kFloat).div_(255);
  const vggt::VggtGeometry seen =
      trained_vision_ != nullptr
          ? trained_vision_->forward(scaled, {.points = settings_.use_pointnet,
                                              .pose = settings_.use_pose})
          : vision_->encode(scaled);
  ViewFeatures views{.tokens = seen.tokens, .pose = seen.pose};
  if (!settings_.use_pointnet) return views;
  const int64_t step = settings_.point_stride;
  const int64_t end = std::numeric_limits<int64_t>::max();
  at::Tensor points =
      seen.points.slice(2, 0, end, step).slice(3, 0, end, step).flatten(2, 3);
  const at::ScalarType type = *type_of(settings_.point_precision);
  if (type == at::kHalf) points = points.clamp(-kMaxHalf, kMaxHalf);
  views.points = points.to(type);
  return views;
}

at::Tensor Encoders::read(const at::Tensor& ids, const at::Tensor& mask) {
  if (trained_language_ != nullptr) {
    return trained_language_->forward(ids, mask);
  }
  const at::NoGradGuard no_grad;
  return language_->encode(ids, mask);
}

std::string Encoders::image_key() const {
  return formats::sha256_of(fmt::format(
      "{}\n{}\n{}\n{} {} {}\n{} {}\n", kImageVersion, vision_->weights_hash(),
      c10::toString(vision_type(settings_, device_)), settings_.image_size,
      settings_.point_stride, settings_.point_precision, settings_.use_pointnet,
      settings_.use_pose));
}

std::string Encoders::sentence_key() const {
  return formats::sha256_of(
      fmt::format("{}\n{}\n", kSentenceVersion, language_->hash()));
}

std::vector<std::pair<std::string, std::string>> Encoders::frozen() const {
  std::vector<std::pair<std::string, std::string>> hashes;
  if (settings_.freeze_vggt) {
    hashes.emplace_back("vggt", vision_->weights_hash());
  }
  if (settings_.freeze_lang_encoder) {
    hashes.emplace_back("lang_encoder", language_->hash());
  }
  return hashes;
}

std::shared_ptr<torch::nn::Module> Encoders::trained_vision() {
  if (settings_.freeze_vggt) return nullptr;
  trained_vision_ = vision_->model();
  return trained_vision_;
}

std::shared_ptr<torch::nn::Module> Encoders::trained_language() {
  if (settings_.freeze_lang_encoder) return nullptr;
  trained_language_ = language_->shared_model();
  for (const at::Tensor& parameter : trained_language_->parameters()) {
    parameter.set_requires_grad(true);
  }
  return trained_language_;
}

}  // namespace lockstep::atlas
