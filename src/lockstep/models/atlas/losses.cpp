#include "lockstep/models/atlas/losses.h"

#include <ATen/ATen.h>

namespace lockstep::atlas {
namespace {

constexpr int64_t kActionPoseSize = 6;

at::Tensor pose_of(const at::Tensor& actions) {
  return actions.slice(1, 0, kActionPoseSize);
}

at::Tensor gripper_of(const at::Tensor& actions) {
  return actions.slice(1, kActionPoseSize);
}

double middle_of(GripperRange range) {
  return range == GripperRange::kZeroOne ? 0.5 : 0.0;
}

// 0 to 1.
at::Tensor closed_part(const at::Tensor& gripper, GripperRange range) {
  return range == GripperRange::kZeroOne ? gripper : (gripper + 1) / 2;
}

at::Tensor pose_losses(const at::Tensor& ours, const at::Tensor& shown,
                       const std::string& type) {
  if (type == "l1") return at::l1_loss(ours, shown, at::Reduction::None);
  if (type == "l2") return at::mse_loss(ours, shown, at::Reduction::None);
  return at::smooth_l1_loss(ours, shown, at::Reduction::None, /*beta=*/1);
}

}  // namespace

AtlasLosses atlas_losses(const AtlasOutput& output, const at::Tensor& actions,
                         const AtlasLossConfig& config, GripperRange range) {
  // Losses are computed in float32 or wider.
  const auto type = at::promoteTypes(output.pose.scalar_type(), at::kFloat);
  const at::Tensor shown = actions.to(type);
  AtlasLosses losses;
  losses.pose =
      pose_losses(output.pose.to(type), pose_of(shown), config.pose_loss_type)
          .mean(1);
  const at::Tensor gripper = gripper_of(shown);
  losses.gripper =
      config.gripper_loss_type == "bce"
          ? at::binary_cross_entropy_with_logits(output.gripper_logit.to(type),
                                                 closed_part(gripper, range),
                                                 {}, {}, at::Reduction::None)
                .squeeze(1)
          : (output.gripper.to(type) - gripper).abs().squeeze(1);
  return losses;
}

AtlasErrors atlas_errors(const AtlasOutput& output, const at::Tensor& actions,
                         GripperRange range) {
  const auto type = at::promoteTypes(output.pose.scalar_type(), at::kFloat);
  const at::Tensor shown = actions.to(type);
  const at::Tensor difference = output.pose.to(type) - pose_of(shown);
  const at::Tensor ours = output.gripper.to(type).squeeze(1);
  const at::Tensor gripper = gripper_of(shown).squeeze(1);
  const double middle = middle_of(range);
  return {.pose_l2 = difference.norm(2, 1),
          .pose_l1 = difference.abs().mean(1),
          .gripper = (ours - gripper).abs(),
          .gripper_is_right = ours.gt(middle).eq(gripper.gt(middle))};
}

}  // namespace lockstep::atlas
