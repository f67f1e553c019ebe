// A small feature extractor that needs no file.
#pragma once

#include <string>
#include <vector>

#include "lockstep/fid/feature_net.h"

namespace lockstep::fid {

// Three convolutions with fixed random weights over the image at 32 x 32:
// averages of all layers, the largest responses of the last one, and moments of
// the colours. Sensitive to noise, blur, wrong colours and wrong shapes; blind
// to detail finer than 32 x 32. Its score, fd_builtin, compares runs with each
// other; it is not comparable to FID. The weights are the same on every machine
// and in every version with this id().
class BuiltinFeatures final : public FeatureNet {
 public:
  BuiltinFeatures();

  std::string name() const override { return "fd_builtin"; }
  std::string id() const override { return "builtin-1"; }
  int64_t width() const override;

 protected:
  at::Tensor features_of(const at::Tensor& levels) const override;
  void move_weights(const c10::Device& device) override;

 private:
  std::vector<at::Tensor> weights_;
};

}  // namespace lockstep::fid
