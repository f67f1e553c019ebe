#include "lockstep/metrics/feature_net.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/formats/tensor_record.h"
#include "lockstep/metrics/builtin_features.h"
#include "lockstep/metrics/inception.h"

namespace lockstep {
namespace {

FidConvention convention_of(const std::string& name) {
  if (name == "pytorch-fid") return FidConvention::kPytorchFid;
  if (name == "torch-fidelity") return FidConvention::kTorchFidelity;
  throw ConfigError(fmt::format(
      "unknown convention of FID '{}': pytorch-fid or torch-fidelity", name));
}

}  // namespace

std::unique_ptr<FeatureNet> make_feature_net(const FeatureNetConfig& config) {
  const FidConvention convention = convention_of(config.convention);
  if (config.weights.empty()) return std::make_unique<BuiltinFeatures>();
  return std::make_unique<Inception>(config.weights, convention);
}

void check_pictures(const at::Tensor& pictures) {
  if (pictures.scalar_type() == at::kByte && pictures.dim() == 4 &&
      pictures.size(1) == 3 && pictures.size(2) > 0 && pictures.size(3) > 0) {
    return;
  }
  throw ConfigError(
      fmt::format("pictures to score are of type {} and shape {}; expected is "
                  "uint8 [batch, 3, height, width]",
                  c10::toString(pictures.scalar_type()),
                  shape_text(pictures.sizes().vec())));
}

}  // namespace lockstep
