#include "lockstep/models/deeplab/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <array>
#include <cmath>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/models/deeplab/lorm.h"

namespace lockstep::deeplab {
namespace {

using at::Tensor;

// Channels of the decoder.
constexpr int64_t kLowWidth = 48;
constexpr int64_t kWidth = 256;

struct Type {
  const char* name;
  const char* aspp;
  const char* lorm;  // "" for none
  bool has_decoder;
};
constexpr std::array<Type, 4> kTypes = {
    {{"res50_ASPP_lorm", "layer_pred0", "layer_camatt", false},
     {"deeplabv2", "layer5", "", false},
     {"deeplabv3p", "layer_pred0", "", true},
     {"deeplabv3p_lorm", "layer_pred0", "layer_lorm", true}}};

const Type& type_of(const ScribbleModelConfig& config) {
  for (const Type& type : kTypes) {
    if (config.type == type.name) return type;
  }
  throw ConfigError(fmt::format("--model_type '{}' is unknown: give one of {}",
                                config.type,
                                base::join(scribble_model_types(), ", ")));
}

AsppConfig aspp_config(const ScribbleModelConfig& config) {
  const int64_t inputs = trunk_widths(config.layers).high;
  if (!type_of(config).has_decoder) {
    return {.inputs = inputs, .outputs = config.num_classes};
  }
  return {.inputs = inputs,
          .outputs = kWidth,
          .dilations = {6, 12, 18},
          .end = AsppEnd::kFeatures};
}

torch::nn::Conv2d conv(int64_t inputs, int64_t outputs, int64_t side) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, side)
                               .padding(side / 2)
                               .bias(false));
}

torch::nn::ReLU relu() {
  return torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true));
}

double decoder_products(const ScribbleModelConfig& config, double pixels) {
  const auto low = static_cast<double>(trunk_widths(config.layers).low);
  const auto classes = static_cast<double>(config.num_classes);
  return pixels * (low * kLowWidth + 9. * (kWidth + kLowWidth) * kWidth +
                   9. * kWidth * kWidth + kWidth * classes);
}

}  // namespace

std::vector<std::string> scribble_model_types() {
  std::vector<std::string> names;
  for (const Type& type : kTypes) names.emplace_back(type.name);
  return names;
}

bool has_lorm(const ScribbleModelConfig& config) {
  return *type_of(config).lorm != '\0';
}

void check_scribble_config(const ScribbleModelConfig& config) {
  type_of(config);
  trunk_widths(config.layers);
  if (config.num_classes < 2 || config.num_classes > data::kNoLabel) {
    throw ConfigError(fmt::format(
        "--numclasses {} is out of range: labels are bytes, 255 stands for "
        "none, so give 2 to 255",
        config.num_classes));
  }
}

double scribble_forward_flops(const ScribbleModelConfig& config,
                              int64_t image_side) {
  const Type& type = type_of(config);
  const TrunkSides sides = trunk_sides(image_side);
  const auto area = [](int64_t side) {
    return static_cast<double>(side) * static_cast<double>(side);
  };
  double products = trunk_products(config.layers, image_side) +
                    aspp_products(aspp_config(config), area(sides.high));
  if (type.has_decoder) products += decoder_products(config, area(sides.low));
  if (has_lorm(config)) {
    products +=
        lorm_products(trunk_widths(config.layers).high, area(sides.high));
  }
  return 2 * products;
}

ScribbleNet::ScribbleNet(const ScribbleModelConfig& config)
    : DilatedResNet(config.layers), config_(config) {
  check_scribble_config(config);
  const Type& type = type_of(config);
  const TrunkWidths widths = trunk_widths(config.layers);
  aspp_ =
      register_module(type.aspp, std::make_shared<Aspp>(aspp_config(config)));
  if (has_lorm(config)) {
    lorm_ = register_module(
        type.lorm, std::make_shared<Lorm>(LormConfig{.width = widths.high}));
  }
  if (type.has_decoder) {
    reduce_ = register_module(
        "reduce", torch::nn::Sequential(conv(widths.low, kLowWidth, 1),
                                        SyncBatchNorm(kLowWidth), relu()));
    fuse_ = register_module(
        "fuse", torch::nn::Sequential(conv(kLowWidth + kWidth, kWidth, 3),
                                      SyncBatchNorm(kWidth), relu(),
                                      conv(kWidth, kWidth, 3),
                                      SyncBatchNorm(kWidth), relu()));
    classifier_ = register_module("classifier",
                                  torch::nn::Conv2d(torch::nn::Conv2dOptions(
                                      kWidth, config.num_classes, 1)));
  }
  reset_weights();
}

void ScribbleNet::reset_weights() {
  const torch::NoGradGuard no_grad;
  for (const auto& item : named_modules("", /*include_self=*/false)) {
    auto* layer = item.value()->as<torch::nn::Conv2d>();
    if (layer == nullptr) continue;
    const auto fan_out = static_cast<double>(
        layer->weight.size(0) * layer->weight.size(2) * layer->weight.size(3));
    layer->weight.normal_(0, std::sqrt(2 / fan_out));
    // LoRM's biases start at 0; other layers keep libtorch's initial biases.
    const bool is_lorm =
        item.key().ends_with("query_conv") || item.key().ends_with("key_conv");
    if (is_lorm) layer->bias.zero_();
  }
}

Tensor ScribbleNet::decode(const TrunkFeatures& features) {
  const Tensor seen = resize_maps(aspp_->forward(features.high),
                                  features.low.size(2), features.low.size(3));
  const Tensor both = at::cat({reduce_->forward(features.low), seen}, 1);
  return classifier_->forward(fuse_->forward(both));
}

ScribbleOutput ScribbleNet::forward(const Tensor& images) {
  const TrunkFeatures features = trunk(images);
  return {.logits = fuse_ ? decode(features) : aspp_->forward(features.high),
          .features = features.high};
}

LossSum ScribbleNet::lorm_loss(const Tensor& features, const Tensor& classes) {
  LOCKSTEP_CHECK(lorm_ != nullptr, "this model type has no LoRM");
  return lorm_->forward(features, classes);
}

}  // namespace lockstep::deeplab
