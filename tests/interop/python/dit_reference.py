"""DiT and its rectified flow in plain PyTorch, written from the description of the guide's training.

Usage: dit_reference.py CASES_FILE RESULTS_FILE

The cases hold sizes, weights and draws; the results hold the forward pass, the loss, all
gradients, sampled images and the state dict after a strict load.
"""
import math
import sys

import torch
from torch import nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5
        self.g = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.g


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        weights = (q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, d))


class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


def modulate(x, shift, scale):
    return x * (1 + scale[:, None]) + shift[:, None]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = RMSNorm(dim)
        self.attn = Attention(dim, heads)
        self.norm2 = RMSNorm(dim)
        self.mlp = Mlp(dim)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def forward(self, x, c):
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.adaLN_modulation(c).chunk(6, 1)
        x = x + gate_a[:, None] * self.attn(modulate(self.norm1(x), shift_a, scale_a))
        return x + gate_m[:, None] * self.mlp(modulate(self.norm2(x), shift_m, scale_m))


class FinalLayer(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.norm_final = RMSNorm(dim)
        self.linear = nn.Linear(dim, out)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 2 * dim))

    def forward(self, x, c):
        shift, scale = self.adaLN_modulation(c).chunk(2, 1)
        # The original swaps the arguments: the first chunk acts as scale.
        return self.linear(modulate(self.norm_final(x), scale, shift))


class PatchEmbed(nn.Module):
    def __init__(self, channels, dim, patch):
        super().__init__()
        self.proj = nn.Conv2d(channels, dim, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class TimestepEmbedder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(256, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        frequencies = torch.exp(-math.log(10) * torch.arange(128, dtype=torch.float32) / 128)
        angles = t[:, None] * frequencies[None]
        return self.mlp(torch.cat([angles.cos(), angles.sin()], -1))


class LabelEmbedder(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.embedding = nn.Embedding(classes + 1, dim)

    def forward(self, y):
        return self.embedding(y)


def position_table(side, dim):
    """First half of the channels: the column; second half: the row. Sines before cosines."""
    omega = 1 / 10000 ** (torch.arange(dim // 4, dtype=torch.float64) / (dim / 4))
    table = torch.zeros(side * side, dim)
    for row in range(side):
        for column in range(side):
            parts = [f(place * omega) for place in (column, row) for f in (torch.sin, torch.cos)]
            table[row * side + column] = torch.cat(parts).float()
    return table


class DiT(nn.Module):
    def __init__(self, size, patch, channels, dim, depth, heads, classes, registers):
        super().__init__()
        self.patch, self.channels, self.side = patch, channels, size // patch
        self.register_tokens = nn.Parameter(torch.zeros(registers, dim))
        self.pos_embed = nn.Parameter(position_table(self.side, dim)[None], requires_grad=False)
        self.x_embedder = PatchEmbed(channels, dim, patch)
        self.t_embedder = TimestepEmbedder(dim)
        self.y_embedder = LabelEmbedder(classes, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.final_layer = FinalLayer(dim, patch * patch * channels)

    def forward(self, x, t, y):
        c = self.t_embedder(t) + self.y_embedder(y)
        x = self.x_embedder(x) + self.pos_embed
        count = x.shape[1]
        x = torch.cat([x, self.register_tokens[None].repeat(x.shape[0], 1, 1)], 1)
        for block in self.blocks:
            x = block(x, c)
        x = self.final_layer(x[:, :count], c)
        x = x.reshape(-1, self.side, self.side, self.patch, self.patch, self.channels)
        size = self.side * self.patch
        return torch.einsum("nhwpqc->nchpwq", x).reshape(-1, self.channels, size, size)


@torch.no_grad()
def sample(model, z, y, w, null, steps):
    """Euler with classifier-free guidance; one weight for each image."""
    for t in torch.linspace(0, 1, steps).flip(0):
        times = t.expand(z.shape[0])
        cond = model(z, times, y)
        uncond = model(z, times, torch.full_like(y, null))
        z = z - (uncond + w[:, None, None, None] * (cond - uncond)) / steps
    return z.clip(-1, 1)


def run(case):
    model = DiT(**case["sizes"])
    own_table = model.pos_embed.detach().clone()
    model.load_state_dict(case["weights"], strict=True)
    x, t, z, y = (case[name] for name in ("x", "t", "z", "y"))
    ratio = t[:, None, None, None]
    velocity = model((1 - ratio) * x + ratio * z, t, y)
    loss = F.mse_loss(velocity, z - x)
    loss.backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
    images = sample(model, z, y, case["w"], case["sizes"]["classes"], 3)
    return {
        "pos_embed": own_table,
        "velocity": velocity.detach(),
        "loss": loss.detach(),
        "gradients": gradients,
        "images": images,
        "model": model.state_dict(),
        "num_trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
    }


def main():
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
