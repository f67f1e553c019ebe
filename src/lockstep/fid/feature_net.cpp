#include "lockstep/fid/feature_net.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <vector>

#include "lockstep/base/shape_text.h"
#include "lockstep/error.h"
#include "lockstep/fid/builtin_features.h"
#include "lockstep/fid/inception.h"
#include "lockstep/formats/tensor_record.h"
#include "lockstep/tensor/autocast.h"

namespace lockstep::fid {
namespace {

// Images at a time: Inception's first layers need 20 MB for each.
constexpr int64_t kPart = 64;

FidConvention convention_of(const std::string& name) {
  if (name == "pytorch-fid") return FidConvention::kPytorchFid;
  if (name == "torch-fidelity") return FidConvention::kTorchFidelity;
  throw ConfigError(fmt::format(
      "unknown FID convention '{}'; use pytorch-fid or torch-fidelity", name));
}

void check_images(const at::Tensor& images) {
  if (images.scalar_type() == at::kByte && images.dim() == 4 &&
      images.size(1) == 3 && images.size(2) > 0 && images.size(3) > 0) {
    return;
  }
  throw ConfigError(fmt::format(
      "images to score are of type {} and shape {}; expected uint8 [batch, 3, "
      "height, width]",
      c10::toString(images.scalar_type()),
      base::shape_text(images.sizes().vec())));
}

}  // namespace

std::unique_ptr<FeatureNet> make_feature_net(const FeatureNetConfig& config) {
  const FidConvention convention = convention_of(config.convention);
  if (config.weights.empty()) return std::make_unique<BuiltinFeatures>();
  return std::make_unique<Inception>(config.weights, convention);
}

at::Tensor FeatureNet::features(const at::Tensor& images) {
  check_images(images);
  const at::NoGradGuard no_grad;
  const tensor::Autocast off(device_.type(), at::kFloat);
  const at::NoTF32Guard no_tf32;
  std::vector<at::Tensor> parts = {
      at::empty({0, width()}, at::TensorOptions(at::kFloat).device(device_))};
  for (int64_t first = 0; first < images.size(0); first += kPart) {
    const at::Tensor part = images.slice(0, first, first + kPart);
    parts.push_back(features_of(part.to(device_, at::kFloat)));
  }
  return at::cat(parts);
}

void FeatureNet::to(const c10::Device& device) {
  move_weights(device);
  device_ = device;
}

}  // namespace lockstep::fid
