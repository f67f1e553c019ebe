// Inception-v3 as it is used for FID.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lockstep/fid/feature_net.h"
#include "lockstep/fid/inception_weights.h"

namespace lockstep::fid {

// How images become Inception's input; scores of the two differ slightly.
enum class FidConvention {
  kPytorchFid,     // Resized with half-pixel centres, then [-1, 1].
  kTorchFidelity,  // As TensorFlow 1: no such centres, (x - 128) / 128.
};

// The 2048 values after the last pooling (pool3). The network differs from the
// usual Inception-v3: averages leave the padding out, and the last block takes
// a maximum instead.
class Inception final : public FeatureNet {
 public:
  // Throws as read_inception_weights().
  Inception(const std::filesystem::path& weights, FidConvention convention);

  std::string name() const override { return "fid"; }
  std::string id() const override;
  int64_t width() const override { return 2048; }

 protected:
  at::Tensor features_of(const at::Tensor& levels) const override;
  void move_weights(const c10::Device& device) override;

 private:
  using Names = std::initializer_list<std::string_view>;

  at::Tensor prepare(const at::Tensor& levels) const;
  // The layers of a block one after the other.
  at::Tensor chain(std::string_view block, Names layers, at::Tensor x) const;
  at::Tensor block_a(std::string_view block, const at::Tensor& x) const;
  at::Tensor block_b(std::string_view block, const at::Tensor& x) const;
  at::Tensor block_c(std::string_view block, const at::Tensor& x) const;
  at::Tensor block_d(std::string_view block, const at::Tensor& x) const;
  at::Tensor block_e(std::string_view block, const at::Tensor& x,
                     const at::Tensor& pooled) const;

  FidConvention convention_;
  InceptionWeights weights_;
};

}  // namespace lockstep::fid
