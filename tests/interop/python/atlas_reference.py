"""The trainable part of the guide atlas in plain PyTorch, written from its description.

Usage: atlas_reference.py CASES_FILE RESULTS_FILE
       atlas_reference.py --check PARAMETERS.tsv

Cases (a dict by name), each (B samples, S views, N points a view, T language tokens):
  sizes      token_size, language_size, geometry, fusion, fusion_heads, fusion_layers (arguments of
             AtlasModel; all may be left out: 2048, 4096, 512, 1024, 16, 4), has_pointnet, has_pose
             (1), gripper_range "zero_one" (a sigmoid) or "minus_one_one" (twice it, less 1)
  weights    the state dict, loaded strictly
  tokens     float32 [B,S,token_size]: means over tokens and over the last two layers of VGGT
  pose       float32 [B,S,9];  points  float32 [B,S,N,3] or [B,S,H,W,3] (either may be left out
             when the model does not take it)
  language   float32 [B,T,language_size];  mask  bool or 0/1 [B,T]: 1 where a token is. Padded
             tokens are not attended to and do not count in the mean
  actions    float32 [B,7]: pose 6, gripper in the range of the data
  settings   pose_loss_type smooth_l1|l1|l2, gripper_loss_type l1|bce, pose_weight, gripper_weight
             (all may be left out: smooth_l1, l1, 1, 0.5)
  is_double  1: all in float64 (may be left out: fp32)
Results (by the same names), of one training step without dropout (BatchNorm in training mode):
  geometry [B,S,geometry], fused [B,fusion], pose [B,6], gripper_logit [B,1], gripper [B,1], terms
  (pose, gripper: sum, normaliser, value), total, metrics (of the same outputs; all without
  weights, by name pose_l2_error, pose_l1_error, gripper_error, gripper_accuracy), gradients,
  model (the state dict after the step: running statistics have moved), num_trainable,
  num_geometry, num_fusion, num_head; eval_pose, eval_gripper [B,...], eval_total, eval_metrics:
  after it, in eval mode. token_query has no gradient.
bce takes logits, with targets mapped to 0 to 1 from the range. accuracy: on the same side of the
middle of the range as the target, where the middle itself is not above it.
--check compares names, shapes, types and kinds with a list, and prints the number of parameters.
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn

from scribble_reference import check

POSE_SIZE = 9
ACTION_POSE = 6
# The middle and half the length of each range.
RANGES = {"zero_one": (0.5, 0.5), "minus_one_one": (0.0, 1.0)}


# Geometry.


class PointNet(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 64, 1)
        self.conv2 = nn.Conv1d(64, 128, 1)
        self.conv3 = nn.Conv1d(128, outputs, 1)
        self.bn1 = nn.BatchNorm1d(64)
        self.bn2 = nn.BatchNorm1d(128)
        self.bn3 = nn.BatchNorm1d(outputs)

    def forward(self, points):
        """[clouds, N, 3] to [clouds, outputs]: the greatest value over a cloud."""
        x = self.bn1(self.conv1(points.transpose(1, 2))).relu()
        x = self.bn2(self.conv2(x)).relu()
        return self.bn3(self.conv3(x)).amax(-1)


class GeometryEncoder(nn.Module):
    def __init__(self, token_size, outputs, has_pointnet, has_pose):
        super().__init__()
        self.token_query = nn.Parameter(torch.randn(1, 1, token_size) * 0.02)  # never used
        tokens_out, points_out, pose_out = outputs // 2, outputs // 2, outputs // 4
        self.token_pooler = nn.Sequential(
            nn.Linear(token_size, tokens_out), nn.LayerNorm(tokens_out), nn.GELU()
        )
        width = tokens_out
        if has_pointnet:
            self.pointnet = PointNet(points_out)
            width += points_out
        if has_pose:
            self.pose_encoder = nn.Sequential(
                nn.Linear(POSE_SIZE, pose_out), nn.LayerNorm(pose_out), nn.GELU()
            )
            width += pose_out
        self.has_pointnet, self.has_pose = has_pointnet, has_pose
        self.final_proj = nn.Identity() if width == outputs else nn.Linear(width, outputs)

    def forward(self, tokens, points, pose):
        parts = [self.token_pooler(tokens)]
        if self.has_pointnet:
            clouds = points.flatten(2, -2).flatten(0, 1)
            parts.append(self.pointnet(clouds).unflatten(0, points.shape[:2]))
        if self.has_pose:
            parts.append(self.pose_encoder(pose))
        return self.final_proj(torch.cat(parts, -1))


# Fusion.


class Fusion(nn.Module):
    def __init__(self, language_size, geometry, width, heads, num_layers, dropout):
        super().__init__()
        self.lang_proj = nn.Sequential(
            nn.Linear(language_size, width), nn.LayerNorm(width), nn.Dropout(dropout)
        )
        self.geom_proj = nn.Sequential(
            nn.Linear(geometry, width), nn.LayerNorm(width), nn.Dropout(dropout)
        )
        self.cross_attn_layers = nn.ModuleList(
            nn.TransformerDecoderLayer(
                width,
                heads,
                4 * width,
                dropout,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(num_layers)
        )
        self.output_norm = nn.LayerNorm(width)
        self.output_proj = nn.Linear(width, width)

    def forward(self, language, mask, geometry):
        x = self.lang_proj(language)
        memory = self.geom_proj(geometry)
        for layer in self.cross_attn_layers:
            x = layer(x, memory, tgt_key_padding_mask=~mask)
        # Where no token is, what a padded one holds must not matter, be it not a number.
        x = x.masked_fill(~mask[..., None], 0)
        x = x.sum(1) / mask.sum(1, keepdim=True)
        return self.output_proj(self.output_norm(x))


# The action.


class ActionHead(nn.Module):
    def __init__(self, width, gripper_range, dropout):
        super().__init__()
        self.middle, self.half = RANGES[gripper_range]
        self.shared_layers = nn.Sequential(
            nn.Linear(width, 512),
            nn.LayerNorm(512),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(512, 256),
            nn.LayerNorm(256),
            nn.GELU(),
        )
        self.pose_head = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, ACTION_POSE))
        self.gripper_head = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, fused):
        """The pose, the gripper before its activation, and the gripper."""
        x = self.shared_layers(fused)
        logit = self.gripper_head(x)
        gripper = self.middle + self.half * (2 * logit.sigmoid() - 1)
        return self.pose_head(x), logit, gripper


class AtlasModel(nn.Module):
    def __init__(
        self,
        token_size=2048,
        language_size=4096,
        geometry=512,
        fusion=1024,
        fusion_heads=16,
        fusion_layers=4,
        has_pointnet=1,
        has_pose=1,
        gripper_range="zero_one",
        dropout=0.0,
    ):
        super().__init__()
        self.geom_encoder = GeometryEncoder(
            token_size, geometry, bool(has_pointnet), bool(has_pose)
        )
        self.fusion = Fusion(
            language_size, geometry, fusion, fusion_heads, fusion_layers, dropout
        )
        self.action_head = ActionHead(fusion, gripper_range, dropout)

    def forward(self, batch):
        geometry = self.geom_encoder(batch["tokens"], batch.get("points"), batch.get("pose"))
        fused = self.fusion(batch["language"], batch["mask"].bool(), geometry)
        pose, logit, gripper = self.action_head(fused)
        return {
            "geometry": geometry,
            "fused": fused,
            "pose": pose,
            "gripper_logit": logit,
            "gripper": gripper,
        }


# Losses and metrics.


def compute_terms(seen, actions, head, settings):
    """Each a sum and the number of values in it."""
    pose, gripper = actions[:, :ACTION_POSE], actions[:, ACTION_POSE:]
    distance = (seen["pose"] - pose).abs()
    squares = distance.square()
    pose_losses = {
        "smooth_l1": torch.where(distance < 1, 0.5 * squares, distance - 0.5),
        "l1": distance,
        "l2": squares,
    }[settings.get("pose_loss_type", "smooth_l1")]
    if settings.get("gripper_loss_type", "l1") == "bce":
        targets = 0.5 * ((gripper - head.middle) / head.half + 1)
        gripper_losses = F.binary_cross_entropy_with_logits(
            seen["gripper_logit"], targets, reduction="none"
        )
    else:
        gripper_losses = (seen["gripper"] - gripper).abs()
    return {
        name: (losses.sum(), torch.tensor(losses.numel()))
        for name, losses in (("pose", pose_losses), ("gripper", gripper_losses))
    }


def compute_metrics(seen, actions, head):
    difference = seen["pose"] - actions[:, :ACTION_POSE]
    gripper = actions[:, ACTION_POSE:]
    is_right = (seen["gripper"] > head.middle) == (gripper > head.middle)
    return {
        "pose_l2_error": difference.norm(dim=1).mean(),
        "pose_l1_error": difference.abs().mean(),
        "gripper_error": (seen["gripper"] - gripper).abs().mean(),
        "gripper_accuracy": is_right.to(difference.dtype).mean(),
    }


def step(model, batch, settings):
    head = model.action_head
    seen = model(batch)
    terms = compute_terms(seen, batch["actions"], head, settings)
    values = {name: total / count for name, (total, count) in terms.items()}
    total = float(settings.get("pose_weight", 1)) * values["pose"]
    total = total + float(settings.get("gripper_weight", 0.5)) * values["gripper"]
    return seen, terms, total, compute_metrics(seen, batch["actions"], head)


def detached(tensors):
    return {name: tensor.detach() for name, tensor in tensors.items()}


def count(module):
    return sum(p.numel() for p in module.parameters())


def run(case):
    model = AtlasModel(**case.get("sizes", {}))
    model.load_state_dict(case["weights"], strict=True)
    batch = {n: value for n, value in case.items() if isinstance(value, torch.Tensor)}
    if case.get("is_double", 0):
        model.double()
        batch = {n: x.double() if x.is_floating_point() else x for n, x in batch.items()}
    settings = case.get("settings", {})
    seen, terms, total, metrics = step(model, batch, settings)
    total.backward()
    model.eval()
    with torch.no_grad():
        eval_seen, _, eval_total, eval_metrics = step(model, batch, settings)
    return {
        **detached(seen),
        "terms": {
            name: {
                "sum": losses.detach(),
                "normaliser": normaliser,
                "value": (losses / normaliser).detach(),
            }
            for name, (losses, normaliser) in terms.items()
        },
        "total": total.detach(),
        "metrics": detached(metrics),
        "gradients": {n: p.grad for n, p in model.named_parameters() if p.grad is not None},
        "model": dict(model.state_dict()),
        "num_trainable": count(model),
        "num_geometry": count(model.geom_encoder),
        "num_fusion": count(model.fusion),
        "num_head": count(model.action_head),
        "eval_pose": eval_seen["pose"],
        "eval_gripper": eval_seen["gripper"],
        "eval_total": eval_total,
        "eval_metrics": eval_metrics,
    }


def main():
    if sys.argv[1] == "--check":
        with torch.device("meta"):
            model = AtlasModel()
        check(model, sys.argv[2])
        return
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
