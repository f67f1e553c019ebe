// The models of the recipe scribble: a dilated ResNet with the heads of
// DeepLab v2 and v3+, with and without LoRM.
//
// Parameters have the names and shapes of the original project, whose state
// dicts it reads and writes; the backbone is at the root, as in torchvision.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/models/deeplab/aspp.h"
#include "lockstep/models/deeplab/losses.h"
#include "lockstep/models/deeplab/resnet.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

struct ScribbleModelConfig {
  // res50_ASPP_lorm (of any depth), deeplabv2, deeplabv3p, deeplabv3p_lorm
  std::string type = "deeplabv3p";
  int64_t layers = 50;  // 18, 34, 50, 101, 152
  int64_t num_classes = 21;
};

std::vector<std::string> scribble_model_types();
bool has_lorm(const ScribbleModelConfig& config);

// Throws ConfigError, which names the recipe's flags.
void check_scribble_config(const ScribbleModelConfig& config);

// Multiplications and additions of one forward pass of one square image, with
// LoRM's, where there is one, as if all pixels were foreground.
double scribble_forward_flops(const ScribbleModelConfig& config,
                              int64_t image_side);

struct ScribbleOutput {
  at::Tensor logits;    // [B, classes, H/8, W/8], of deeplabv3p at H/4, W/4
  at::Tensor features;  // the trunk's last, for LoRM
};

class Lorm;

class ScribbleNet : public DilatedResNet {
 public:
  explicit ScribbleNet(const ScribbleModelConfig& config);

  // images [B, 3, H, W], normalised. Upsample the logits with resize_maps() or
  // log_probabilities().
  ScribbleOutput forward(const at::Tensor& images);

  // See Lorm::forward(). Only where has_lorm(config()).
  LossSum lorm_loss(const at::Tensor& features, const at::Tensor& classes);

  const ScribbleModelConfig& config() const { return config_; }

 private:
  void reset_weights();
  at::Tensor decode(const TrunkFeatures& features);

  ScribbleModelConfig config_;
  std::shared_ptr<Aspp> aspp_;
  std::shared_ptr<Lorm> lorm_;
  // The decoder of deeplabv3p.
  torch::nn::Sequential reduce_{nullptr};
  torch::nn::Sequential fuse_{nullptr};
  torch::nn::Conv2d classifier_{nullptr};
};

}  // namespace lockstep::deeplab
