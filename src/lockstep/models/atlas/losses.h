// Losses and errors of predicted actions.
#pragma once

#include <string>

#include "lockstep/models/atlas/model.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::atlas {

struct AtlasLossConfig {
  double pose_weight = 1;
  double gripper_weight = 0.5;
  std::string pose_loss_type = "smooth_l1";  // l1, l2, smooth_l1
  std::string gripper_loss_type = "l1";      // l1, bce
};

// One number per sample, [B]: the mean over the components of an action.
struct AtlasLosses {
  at::Tensor pose = {};
  at::Tensor gripper = {};
};

// actions [B, 7].
AtlasLosses atlas_losses(const AtlasOutput& output, const at::Tensor& actions,
                         const AtlasLossConfig& config, GripperRange range);

// One number per sample each, [B].
struct AtlasErrors {
  at::Tensor pose_l2 = {};
  at::Tensor pose_l1 = {};
  at::Tensor gripper = {};
  at::Tensor gripper_is_right = {};  // On the same side of the midpoint.
};

AtlasErrors atlas_errors(const AtlasOutput& output, const at::Tensor& actions,
                         GripperRange range);

}  // namespace lockstep::atlas
