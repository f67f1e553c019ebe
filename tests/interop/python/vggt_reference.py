"""VGGT of any size in plain PyTorch, written from its description.

Usage: vggt_reference.py CASES_FILE RESULTS_FILE
       vggt_reference.py --check PARAMETERS.tsv

Cases (a dict by name), each:
  sizes    arguments of Vggt (see there; all may be left out: VGGT-1B). TINY below is an example
  weights  the state dict without track_head., loaded strictly
  images   float32 [B,S,3,H,W], 0 to 1; H and W are multiples of the patch, need not be image_size
           and need not be equal (the positions of the ViT are then interpolated)
  is_double  1: all in float64 (may be left out: fp32)
  with_gradients  1: total and gradients too (may be left out)
Results (by the same names), P = 1 + registers + patches tokens a frame, C = 2 * width:
  patch_tokens [B*S,patches,width] of the ViT after its norm; layers, a dict "0", "1", ... of
  [B,S,P,C] (frame block's tokens, then global block's); tokens [B,S,C] (mean of the last two
  layers and of all tokens); poses [iterations,B,S,9] and pose [B,S,9], the last one (translation
  3, quaternion 4, fields of view 2); points [B,S,H,W,3], points_conf [B,S,H,W], depth
  [B,S,H,W,1], depth_conf [B,S,H,W]; num_parameters.
  total is the sum of the mean squares of tokens, pose, points, depth and both confidences; gradients of it by name
  (mask_token has none). An iteration of the camera head takes the pose of the one before without
  its gradient, so that empty_pose_tokens has none either when there is more than one.
--check compares names, shapes and types at full size with a list and prints the number of
parameters; nothing is allocated.
"""
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

from scribble_reference import check

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
POSE_SIZE = 9
FIRST_FOV = 7
ROPE_BASE = 100.0
UV_BASE = 100.0
UV_RATIO = 0.1

# Every code path, in seconds on a CPU.
TINY = {
    "image_size": 28,
    "width": 16,
    "depth": 4,
    "heads": 2,
    "camera_depth": 2,
    "camera_iterations": 3,
    "dpt_features": 8,
    "dpt_outs": [4, 8, 12, 16],
    "dpt_layers": [0, 1, 2, 3],
    "dpt_hidden": 6,
}


# Transformer blocks.


class LayerScale(nn.Module):
    def __init__(self, width, start):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), start))

    def forward(self, x):
        return x * self.gamma


class Mlp(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


def rotary_tables(rows, columns, num_special, head_size):
    """cos and sin, [tokens, head_size]: the first half turns by the row, the second by the column.

    Special tokens come first and stand at 0, patches begin at 1.
    """
    size = head_size // 2
    rates = ROPE_BASE ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)) + 1
    places = torch.cat([places.new_zeros(num_special, 2), places])
    angles = places[:, :, None] * rates  # [tokens, 2, size / 2]
    angles = torch.cat([angles, angles], -1).flatten(1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """Each half of x [..., tokens, head_size] is two quarters: the pairs that turn."""
    first, second = x.unflatten(-1, (2, 2, -1)).unbind(-2)
    turned = torch.stack([-second, first], -2).flatten(-3)
    return x * cos + turned * sin


class Attention(nn.Module):
    def __init__(self, width, heads, has_qk_norm):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        size = width // heads
        self.q_norm = nn.LayerNorm(size) if has_qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(size) if has_qk_norm else nn.Identity()
        self.proj = nn.Linear(width, width)

    def forward(self, x, rope=None):
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        if rope is not None:
            q, k = rotate(q, *rope), rotate(k, *rope)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, scale, eps=1e-5, has_qk_norm=False):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.attn = Attention(width, heads, has_qk_norm)
        self.ls1 = LayerScale(width, scale)
        self.norm2 = nn.LayerNorm(width, eps=eps)
        self.mlp = Mlp(width, 4 * width, width)
        self.ls2 = LayerScale(width, scale)

    def forward(self, x, rope=None):
        x = x + self.ls1(self.attn(self.norm1(x), rope))
        return x + self.ls2(self.mlp(self.norm2(x)))


# DINOv2.


class PatchEmbed(nn.Module):
    def __init__(self, patch, width):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class VisionTransformer(nn.Module):
    def __init__(self, image_size, patch, width, depth, heads, registers):
        super().__init__()
        self.patch = patch
        self.side = image_size // patch
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.randn(1, self.side**2 + 1, width) * 0.02)
        self.register_tokens = nn.Parameter(torch.zeros(1, registers, width))
        self.mask_token = nn.Parameter(torch.zeros(1, width))  # of the pretraining: not used
        self.patch_embed = PatchEmbed(patch, width)
        self.blocks = nn.ModuleList(Block(width, heads, 1.0, eps=1e-6) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def positions(self, rows, columns):
        if rows == self.side and columns == self.side:
            return self.pos_embed
        table = self.pos_embed
        if table.dtype != torch.float64:
            table = table.float()
        grid = table[:, 1:].unflatten(1, (self.side, self.side)).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, (rows, columns), mode="bicubic", antialias=True)
        table = torch.cat([table[:, :1], grid.flatten(2).transpose(1, 2)], 1)
        return table.to(self.pos_embed.dtype)

    def forward(self, images):
        """Images [N,3,H,W], normalised, to patches [N,patches,width]."""
        rows, columns = (size // self.patch for size in images.shape[-2:])
        positions = self.positions(rows, columns)
        x = self.patch_embed(images) + positions[:, 1:]
        count = x.shape[0]
        cls = self.cls_token + positions[:, :1]
        x = torch.cat([cls.expand(count, -1, -1), self.register_tokens.expand(count, -1, -1), x], 1)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 1 + self.register_tokens.shape[1] :]


# The aggregator.


def of_frames(token, batch, frames):
    """[1,2,n,width], of the first frame and of all others, to [batch * frames, n, width]."""
    first, others = token[:, :1], token[:, 1:]
    both = torch.cat([first, others.expand(-1, frames - 1, -1, -1)], 1)
    return both.expand(batch, -1, -1, -1).flatten(0, 1)


class Aggregator(nn.Module):
    def __init__(self, vit, width, depth, heads, registers):
        super().__init__()
        self.num_special = 1 + registers
        self.head_size = width // heads
        self.camera_token = nn.Parameter(torch.randn(1, 2, 1, width) * 1e-6)
        self.register_token = nn.Parameter(torch.randn(1, 2, registers, width) * 1e-6)
        self.patch_embed = vit
        self.frame_blocks = nn.ModuleList(
            Block(width, heads, 0.01, has_qk_norm=True) for _ in range(depth)
        )
        self.global_blocks = nn.ModuleList(
            Block(width, heads, 0.01, has_qk_norm=True) for _ in range(depth)
        )
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(3, 1, 1), persistent=False)
        self.tables = {}

    def ropes(self, rows, columns, frames, like):
        """Tables for the frame blocks and for the global blocks, made once for a size."""
        key = (rows, columns, frames, like.device, like.dtype)
        if key not in self.tables:
            made = rotary_tables(rows, columns, self.num_special, self.head_size)
            made = [table.to(like) for table in made]
            self.tables[key] = made, [table.repeat(frames, 1) for table in made]
        return self.tables[key]

    def forward(self, images, wanted=None):
        """The wanted layers (none given: all), by number, [B,S,P,2*width]; and the ViT's patches."""
        batch, frames, _, height, width = images.shape
        images = (images - self.mean) / self.std
        patches = self.patch_embed(images.flatten(0, 1).to(self.camera_token.dtype))
        special = (of_frames(t, batch, frames) for t in (self.camera_token, self.register_token))
        x = torch.cat([*special, patches], 1)
        patch = self.patch_embed.patch
        of_frame, of_all = self.ropes(height // patch, width // patch, frames, x)
        layers = {}
        for i, (frame_block, global_block) in enumerate(zip(self.frame_blocks, self.global_blocks)):
            in_frame = frame_block(x, of_frame)
            x = global_block(in_frame.unflatten(0, (batch, frames)).flatten(1, 2), of_all)
            x = x.unflatten(1, (frames, -1)).flatten(0, 1)
            if wanted is None or i in wanted:
                layers[i] = torch.cat([in_frame, x], -1).unflatten(0, (batch, frames))
        return layers, patches


# The camera head.


class CameraHead(nn.Module):
    def __init__(self, width, depth, heads, iterations):
        super().__init__()
        self.iterations = iterations
        self.empty_pose_tokens = nn.Parameter(torch.zeros(1, 1, POSE_SIZE))
        self.trunk = nn.Sequential(*(Block(width, heads, 0.01) for _ in range(depth)))
        self.token_norm = nn.LayerNorm(width)
        self.trunk_norm = nn.LayerNorm(width)
        self.embed_pose = nn.Linear(POSE_SIZE, width)
        self.poseLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 3 * width))
        self.adaln_norm = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.pose_branch = Mlp(width, width // 2, POSE_SIZE)

    def forward(self, last_layer):
        """The poses [B,S,9] of all iterations."""
        tokens = self.token_norm(last_layer[:, :, 0])
        normed = self.adaln_norm(tokens)
        pose, poses = None, []
        for _ in range(self.iterations):
            # The pose as it is before its activation goes on.
            pose = None if pose is None else pose.detach()
            known = self.empty_pose_tokens.expand(*tokens.shape[:2], -1) if pose is None else pose
            shift, scale, gate = self.poseLN_modulation(self.embed_pose(known)).chunk(3, -1)
            x = self.trunk(tokens + gate * (normed * (1 + scale) + shift))
            delta = self.pose_branch(self.trunk_norm(x))
            pose = delta if pose is None else pose + delta
            poses.append(torch.cat([pose[..., :FIRST_FOV], pose[..., FIRST_FOV:].relu()], -1))
        return poses


# The dense heads.


def uv_table(height, width, aspect, channels):
    """[channels,height,width]: sines and cosines of the column, then of the row.

    The corners of the whole image lie on a circle of radius 1.
    """
    diagonal = math.hypot(aspect, 1)
    rates = UV_BASE ** (-torch.arange(channels // 4, dtype=torch.float64) / (channels // 4))
    waves = []
    for count, span in ((width, aspect / diagonal), (height, 1 / diagonal)):
        end = span * (count - 1) / count
        angles = torch.linspace(-end, end, count, dtype=torch.float64) * rates[:, None]
        waves.append(torch.cat([angles.sin(), angles.cos()]))  # [channels / 2, count]
    u = waves[0][:, None, :].expand(-1, height, -1)
    v = waves[1][:, :, None].expand(-1, -1, width)
    return UV_RATIO * torch.cat([u, v])


def resize(x, size):
    return F.interpolate(x, size, mode="bilinear", align_corners=True)


class ResidualUnit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        # The original's ReLU works in place, so that relu(x) is what is added.
        x = x.relu()
        return self.conv2(self.conv1(x).relu()) + x


class FusionBlock(nn.Module):
    def __init__(self, width, has_skip):
        super().__init__()
        self.out_conv = nn.Conv2d(width, width, 1)
        if has_skip:
            self.resConfUnit1 = ResidualUnit(width)
        self.resConfUnit2 = ResidualUnit(width)

    def forward(self, x, skip, size):
        if skip is not None:
            x = x + self.resConfUnit1(skip)
        return self.out_conv(resize(self.resConfUnit2(x), size))


class Scratch(nn.Module):
    def __init__(self, outs, features, hidden, outputs):
        super().__init__()
        for i, inputs in enumerate(outs, 1):
            setattr(self, f"layer{i}_rn", nn.Conv2d(inputs, features, 3, padding=1, bias=False))
        for i in range(1, 5):
            setattr(self, f"refinenet{i}", FusionBlock(features, has_skip=i < 4))
        self.output_conv1 = nn.Conv2d(features, features // 2, 3, padding=1)
        self.output_conv2 = nn.Sequential(
            nn.Conv2d(features // 2, hidden, 3, padding=1), nn.ReLU(), nn.Conv2d(hidden, outputs, 1)
        )

    def forward(self, maps):
        """Four maps, from fine to coarse, to one of twice the size of the finest."""
        rn = [getattr(self, f"layer{i}_rn")(x) for i, x in enumerate(maps, 1)]
        sizes = [x.shape[-2:] for x in rn]
        x = self.refinenet4(rn[3], None, sizes[2])
        x = self.refinenet3(x, rn[2], sizes[1])
        x = self.refinenet2(x, rn[1], sizes[0])
        x = self.refinenet1(x, rn[0], [2 * n for n in sizes[0]])
        return self.output_conv1(x)


class DptHead(nn.Module):
    def __init__(self, inputs, patch, layers, features, outs, hidden, outputs, activation):
        super().__init__()
        self.patch, self.layers, self.activation = patch, layers, activation
        self.norm = nn.LayerNorm(inputs)
        self.projects = nn.ModuleList(nn.Conv2d(inputs, out, 1) for out in outs)
        self.resize_layers = nn.ModuleList(
            [
                nn.ConvTranspose2d(outs[0], outs[0], 4, 4),
                nn.ConvTranspose2d(outs[1], outs[1], 2, 2),
                nn.Identity(),
                nn.Conv2d(outs[3], outs[3], 3, 2, 1),
            ]
        )
        self.scratch = Scratch(outs, features, hidden, outputs)
        self.tables = {}

    def add_uv(self, x, aspect):
        channels, height, width = x.shape[1:]
        key = (channels, height, width, aspect, x.device, x.dtype)
        if key not in self.tables:
            self.tables[key] = uv_table(height, width, aspect, channels).to(x)
        return x + self.tables[key]

    def forward(self, layers, num_special, height, width):
        """Values [B,S,H,W,outputs - 1] and confidences [B,S,H,W]."""
        grid = (height // self.patch, width // self.patch)
        aspect = width / height
        maps = []
        for i, project, resize_layer in zip(self.layers, self.projects, self.resize_layers):
            x = self.norm(layers[i][:, :, num_special:]).flatten(0, 1)
            x = project(x.transpose(1, 2).unflatten(2, grid))
            maps.append(resize_layer(self.add_uv(x, aspect)))
        x = resize(self.scratch(maps), [n * self.patch for n in grid])
        x = self.scratch.output_conv2(self.add_uv(x, aspect))
        x = x.permute(0, 2, 3, 1).unflatten(0, layers[self.layers[0]].shape[:2])
        return self.activation(x[..., :-1]), 1 + x[..., -1].exp()


def inverse_log(x):
    return x.sign() * x.abs().expm1()


# The whole.


class Vggt(nn.Module):
    def __init__(
        self,
        image_size=518,
        patch=14,
        width=1024,
        depth=24,
        heads=16,
        registers=4,
        vit_depth=None,  # none: as depth
        camera_depth=4,
        camera_heads=None,  # none: as heads
        camera_iterations=4,
        dpt_features=256,
        dpt_outs=(256, 512, 1024, 1024),
        dpt_layers=(4, 11, 17, 23),
        dpt_hidden=32,
    ):
        super().__init__()
        vit = VisionTransformer(image_size, patch, width, vit_depth or depth, heads, registers)
        self.aggregator = Aggregator(vit, width, depth, heads, registers)
        self.camera_head = CameraHead(
            2 * width, camera_depth, camera_heads or heads, camera_iterations
        )
        dpt = (2 * width, patch, dpt_layers, dpt_features, dpt_outs, dpt_hidden)
        self.point_head = DptHead(*dpt, 4, inverse_log)
        self.depth_head = DptHead(*dpt, 2, torch.exp)
        self.last_two = (depth - 2, depth - 1)

    def forward(self, images, has_depth=True, keeps_all=False, trunk_type=None):
        """Results as at the top of this file.

        keeps_all: all layers, not only those that are needed. trunk_type: autocast of all but the
        heads, which compute in fp32.
        """
        height, width = images.shape[-2:]
        wanted = None if keeps_all else {*self.point_head.layers, *self.last_two}
        device = images.device.type
        with torch.autocast(device, trunk_type, enabled=trunk_type is not None):
            layers, patches = self.aggregator(images, wanted)
        with torch.autocast(device, enabled=False):
            layers = {i: x.to(self.point_head.norm.weight.dtype) for i, x in layers.items()}
            poses = self.camera_head(layers[self.last_two[1]])
            tokens = sum(layers[i].mean(2) for i in self.last_two) / 2
            where = (layers, self.aggregator.num_special, height, width)
            points, points_conf = self.point_head(*where)
            results = {
                "tokens": tokens,
                "poses": torch.stack([pose.detach() for pose in poses]),
                "pose": poses[-1],
                "points": points,
                "points_conf": points_conf,
            }
            if has_depth:
                results["depth"], results["depth_conf"] = self.depth_head(*where)
        if keeps_all:
            results["patch_tokens"] = patches
            results["layers"] = {str(i): x for i, x in layers.items()}
        return results


def run(case):
    model = Vggt(**case.get("sizes", {}))
    model.load_state_dict(case["weights"], strict=True)
    images = case["images"]
    if case.get("is_double", 0):
        model.double()
        images = images.double()
    with_gradients = bool(case.get("with_gradients", 0))
    with torch.set_grad_enabled(with_gradients):
        results = model(images, keeps_all=True)
    results["num_parameters"] = sum(p.numel() for p in model.parameters())
    if with_gradients:
        names = ("tokens", "pose", "points", "points_conf", "depth", "depth_conf")
        total = sum(results[n].square().mean() for n in names)
        total.backward()
        results["total"] = total
        results["gradients"] = {
            n: p.grad for n, p in model.named_parameters() if p.grad is not None
        }
    return detached(results)


def detached(tree):
    if isinstance(tree, dict):
        return {name: detached(value) for name, value in tree.items()}
    return tree.detach().contiguous() if isinstance(tree, torch.Tensor) else tree


def main():
    if sys.argv[1] == "--check":
        with torch.device("meta"):
            model = Vggt().requires_grad_(False)
        check(model, sys.argv[2], ignored="track_head.")
        return
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
