// Feature extractors: networks that turn images into the features that scores
// compare.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/tensor/tensor.h"

namespace lockstep::fid {

struct FeatureNetConfig {
  // Inception's weights, as pytorch-fid and torch-fidelity use them:
  // pt_inception-2015-12-05-6726825d.pth. Empty: the built-in extractor.
  std::string weights = {};
  std::string convention = "pytorch-fid";  // Or "torch-fidelity".
};

// Fixed weights, no gradients, float32 whatever autocast is around. Made on the
// CPU.
class FeatureNet {
 public:
  virtual ~FeatureNet() = default;

  // images: uint8 [batch, 3, height, width] of any size and device. Returns
  // float [batch, width()] on the network's device; an image's features do not
  // depend on the others in its batch. Throws ConfigError for other tensors.
  at::Tensor features(const at::Tensor& images);

  // The score's name: "fid" or "fd_builtin".
  virtual std::string name() const = 0;
  // Recorded in statistics files: statistics with different ids are not
  // comparable.
  virtual std::string id() const = 0;
  virtual int64_t width() const = 0;
  void to(const c10::Device& device);

 protected:
  // Features of a chunk of images: float, 0 to 255, on the device.
  virtual at::Tensor features_of(const at::Tensor& levels) const = 0;
  virtual void move_weights(const c10::Device& device) = 0;

 private:
  c10::Device device_{c10::DeviceType::CPU};
};

// Throws ConfigError for an unknown convention and for a file with other
// weights, IoError and FormatError; all name the file.
std::unique_ptr<FeatureNet> make_feature_net(const FeatureNetConfig& config);

}  // namespace lockstep::fid
