"""The models of dit and jit for the benchmark: those of the parity tests, made fast.

The tests' references are written to be read. Here the same modules get fused attention, fused
norms and constants that lie on the device; check() proves that they still give the same.
"""
import math
import sys
from pathlib import Path

import torch
from torch import nn
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "interop" / "python"))
import dit_reference as dit  # noqa: E402
import jit_image_reference as jit  # noqa: E402


def attend(layer, q, k, v):
    """q, k, v [B, N, heads, size]"""
    mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
    return layer.proj(mixed.transpose(1, 2).flatten(2))


def rotate_complex(x, table):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.view_as_complex(table)).flatten(-2)


def rotate_real(x, table):
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = table.unbind(-1)
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


def rotate(x, table):
    """Complex numbers are fast in eager mode; the compiler knows real ones only."""
    return rotate_real(x, table) if torch.compiler.is_compiling() else rotate_complex(x, table)


class ScalarNorm(dit.RMSNorm):
    def forward(self, x):
        # As small as 1e-12, the least length of F.normalize, squared.
        gains = self.g.expand(x.shape[-1]).contiguous()
        return F.rms_norm(x.float(), x.shape[-1:], gains, 1e-24)


class VectorNorm(jit.RMSNorm):
    def forward(self, x):
        return F.rms_norm(x.float(), self.weight.shape, self.weight, 1e-6)


class DitAttention(dit.Attention):
    def forward(self, x):
        return attend(self, *self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2))


class JitAttention(jit.Attention):
    def forward(self, x, table):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        return attend(self, rotate(self.q_norm(q), table), rotate(self.k_norm(k), table), v)


class DitTimes(dit.TimestepEmbedder):
    def forward(self, t):
        angles = t[:, None] * self.frequencies
        return self.mlp(torch.cat([angles.cos(), angles.sin()], -1))


class JitTimes(jit.TimestepEmbedder):
    forward = DitTimes.forward


class JitNet(jit.Net):
    def forward(self, x, t, y):
        label = self.y_embedder(y)
        c = self.t_embedder(t) + label
        x = self.x_embedder(x) + self.pos_embed
        table = self.rotations[self.context :]
        for i, block in enumerate(self.blocks):
            if i == self.start:
                x = torch.cat([label[:, None] + self.in_context_posemb, x], 1)
                table = self.rotations
            x = block(x, c, table)
        x = self.final_layer(x[:, self.context :], c)
        x = x.unflatten(1, (self.side, self.side)).unflatten(-1, (self.patch, self.patch, -1))
        size = self.side * self.patch
        return x.permute(0, 5, 1, 3, 2, 4).reshape(-1, self.channels, size, size)


FAST = {
    dit.RMSNorm: ScalarNorm,
    dit.Attention: DitAttention,
    dit.TimestepEmbedder: DitTimes,
    jit.RMSNorm: VectorNorm,
    jit.Attention: JitAttention,
    jit.TimestepEmbedder: JitTimes,
    jit.Net: JitNet,
}
SLOWEST_WAVE = {DitTimes: 10, JitTimes: 10000}


def hasten(model):
    """The same weights, computed by the classes above."""
    for module in model.modules():
        module.__class__ = FAST.get(type(module), type(module))
        if isinstance(module, (DitTimes, JitTimes)):
            period = SLOWEST_WAVE[type(module)]
            waves = torch.exp(-math.log(period) * torch.arange(128, dtype=torch.float32) / 128)
            module.register_buffer("frequencies", waves, persistent=False)
        if isinstance(module, JitNet):
            angles = jit.rotation_angles(module.side, module.head, module.context)
            table = torch.stack([angles.cos(), angles.sin()], -1).float()
            module.register_buffer("rotations", table[:, None], persistent=False)
    return model


def begin_as_recipe(model):
    """Zeros where the recipes begin with zeros; the other draws do not matter for the speed."""
    for name, parameter in model.named_parameters():
        if "adaLN_modulation" in name or "final_layer.linear" in name:
            nn.init.zeros_(parameter)
        elif name in ("register_tokens", "in_context_posemb"):
            nn.init.normal_(parameter, std=0.02)
    return model


def dit_loss(model, x, n, y):
    t = torch.randn(len(x), device=x.device).sigmoid()
    ratio = t[:, None, None, None]
    velocity = model((1 - ratio) * x + ratio * n, t, y).float()
    return (velocity - (n - x)).square().mean()


def jit_loss(model, x, n, y):
    t = (0.8 * torch.randn(len(x), device=x.device) - 0.8).sigmoid()
    ratio = t[:, None, None, None]
    predicted = model(ratio * x + (1 - ratio) * n, t, y).float()
    errors = (predicted - x).square().mean((1, 2, 3))
    return (errors / (1 - t).clamp_min(0.05).square()).mean()


RECIPES = {
    "dit": {"model": dit.DiT, "loss": dit_loss, "averages": [0.9999], "warms_averages": True},
    "jit": {
        "model": jit.Net,
        "loss": jit_loss,
        "averages": [0.9999, 0.9996],
        "warms_averages": False,
    },
}


def make(recipe, sizes):
    return begin_as_recipe(hasten(RECIPES[recipe]["model"](**sizes)))


@torch.no_grad()
def check():
    """The fast models give what the references give."""
    shared = {"size": 8, "patch": 2, "channels": 3, "dim": 32, "depth": 2, "heads": 2, "classes": 3}
    x, t, y = torch.randn(2, 3, 8, 8), torch.rand(2), torch.tensor([0, 3])
    for model in (
        dit.DiT(**shared, registers=2),
        jit.Net(**shared, bottleneck=8, context=2, start=1),
    ):
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.3)
        expected = model(x, t, y)
        torch.testing.assert_close(hasten(model)(x, t, y), expected, rtol=1e-4, atol=1e-4)
    heads = torch.randn(2, 18, 2, 16)
    table = model.rotations
    torch.testing.assert_close(rotate_real(heads, table), rotate_complex(heads, table))
