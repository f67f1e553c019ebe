"""JiT for images in plain PyTorch, written from the description of the paper's training.

Usage: jit_image_reference.py CASES_FILE RESULTS_FILE

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
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def rotation_angles(side, head, context):
    """One row of angles per token, one angle per pair of channels: row first, then column."""
    axis = head // 2
    speeds = [10000 ** (-2 * i / axis) for i in range(axis // 2)]
    rows = [[0.0] * (head // 2)] * context
    for row in range(side):
        for column in range(side):
            rows.append([row * s for s in speeds] + [column * s for s in speeds])
    return torch.tensor(rows, dtype=torch.float64)


def rotate(x, angles):
    """Turns the pairs (0, 1), (2, 3), ... of the last dimension."""
    cos, sin = angles.cos().float(), angles.sin().float()
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.empty_like(x)
    turned[..., 0::2] = even * cos - odd * sin
    turned[..., 1::2] = odd * cos + even * sin
    return turned


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q_norm = RMSNorm(dim // heads)
        self.k_norm = RMSNorm(dim // heads)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, angles):
        b, n, d = x.shape
        head = d // self.heads
        q, k, v = self.qkv(x).split(d, -1)
        q, k, v = (part.reshape(b, n, self.heads, head).transpose(1, 2) for part in (q, k, v))
        q = rotate(self.q_norm(q), angles)
        k = rotate(self.k_norm(k), angles)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(head)).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, d))


class SwiGLU(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.hidden = int(4 * dim * 2 / 3)
        self.w12 = nn.Linear(dim, 2 * self.hidden)
        self.w3 = nn.Linear(self.hidden, dim)

    def forward(self, x):
        both = self.w12(x)
        return self.w3(F.silu(both[..., : self.hidden]) * both[..., self.hidden :])


def modulate(x, shift, scale):
    return x * (1 + scale[:, None]) + shift[:, None]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = RMSNorm(dim)
        self.attn = Attention(dim, heads)
        self.norm2 = RMSNorm(dim)
        self.mlp = SwiGLU(dim)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def forward(self, x, c, angles):
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.adaLN_modulation(c).chunk(6, 1)
        x = x + gate_a[:, None] * self.attn(modulate(self.norm1(x), shift_a, scale_a), angles)
        return x + gate_m[:, None] * self.mlp(modulate(self.norm2(x), shift_m, scale_m))


class FinalLayer(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.norm_final = RMSNorm(dim)
        self.linear = nn.Linear(dim, out)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 2 * dim))

    def forward(self, x, c):
        shift, scale = self.adaLN_modulation(c).chunk(2, 1)
        return self.linear(modulate(self.norm_final(x), shift, scale))


class PatchEmbed(nn.Module):
    def __init__(self, channels, bottleneck, dim, patch):
        super().__init__()
        self.proj1 = nn.Conv2d(channels, bottleneck, patch, patch, bias=False)
        self.proj2 = nn.Conv2d(bottleneck, dim, 1)

    def forward(self, x):
        return self.proj2(self.proj1(x)).flatten(2).transpose(1, 2)


class TimestepEmbedder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(256, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        frequencies = torch.exp(-math.log(10000) * torch.arange(128, dtype=torch.float32) / 128)
        angles = t[:, None] * frequencies[None]
        return self.mlp(torch.cat([angles.cos(), angles.sin()], -1))


class LabelEmbedder(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.embedding_table = nn.Embedding(classes + 1, dim)

    def forward(self, y):
        return self.embedding_table(y)


def position_table(side, dim):
    """First half of the channels: the column; second half: the row. Sines before cosines."""
    omega = 1 / 10000 ** (torch.arange(dim // 4, dtype=torch.float64) / (dim / 4))
    table = torch.zeros(side * side, dim)
    for row in range(side):
        for column in range(side):
            parts = [f(place * omega) for place in (column, row) for f in (torch.sin, torch.cos)]
            table[row * side + column] = torch.cat(parts).float()
    return table


class Net(nn.Module):
    def __init__(self, size, patch, channels, dim, depth, heads, classes, bottleneck, context, start):
        super().__init__()
        self.patch, self.channels, self.side = patch, channels, size // patch
        self.context, self.start, self.head = context, start, dim // heads
        self.pos_embed = nn.Parameter(position_table(self.side, dim)[None], requires_grad=False)
        self.in_context_posemb = nn.Parameter(torch.zeros(1, context, dim))
        self.t_embedder = TimestepEmbedder(dim)
        self.y_embedder = LabelEmbedder(classes, dim)
        self.x_embedder = PatchEmbed(channels, bottleneck, dim, patch)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.final_layer = FinalLayer(dim, patch * patch * channels)

    def forward(self, x, t, y):
        label = self.y_embedder(y)
        c = self.t_embedder(t) + label
        x = self.x_embedder(x) + self.pos_embed
        angles = rotation_angles(self.side, self.head, 0)
        for i, block in enumerate(self.blocks):
            if i == self.start:
                context = label[:, None].repeat(1, self.context, 1) + self.in_context_posemb
                x = torch.cat([context, x], 1)
                angles = rotation_angles(self.side, self.head, self.context)
            x = block(x, c, angles)
        x = self.final_layer(x[:, self.context :], c)
        x = x.reshape(-1, self.side, self.side, self.patch, self.patch, self.channels)
        size = self.side * self.patch
        return torch.einsum("nhwpqc->nchpwq", x).reshape(-1, self.channels, size, size)


class Denoiser(nn.Module):
    def __init__(self, sizes, noise_scale, t_eps):
        super().__init__()
        self.net = Net(**sizes)
        self.noise_scale, self.t_eps = noise_scale, t_eps
        self.null = sizes["classes"]

    def velocity(self, z, t, y):
        return (self.net(z, t, y) - z) / (1 - t).clamp_min(self.t_eps)[:, None, None, None]

    def loss(self, x, t, noise, y):
        ratio = t[:, None, None, None]
        z = ratio * x + (1 - ratio) * noise * self.noise_scale
        target = (x - z) / (1 - ratio).clamp_min(self.t_eps)
        return ((target - self.velocity(z, t, y)) ** 2).mean()

    def guided(self, z, t, y, w, low, high):
        t = torch.full((z.shape[0],), t)
        cond = self.velocity(z, t, y)
        uncond = self.velocity(z, t, torch.full_like(y, self.null))
        inside = (t < high) & ((t > low) if low != 0 else torch.ones_like(t, dtype=torch.bool))
        weight = torch.where(inside, w, torch.ones_like(t))[:, None, None, None]
        return uncond + weight * (cond - uncond)

    @torch.no_grad()
    def sample(self, noise, y, w, low, high, steps, method):
        times = torch.linspace(0, 1, steps + 1).tolist()
        z = noise * self.noise_scale
        for i, (now, then) in enumerate(zip(times, times[1:])):
            v = self.guided(z, now, y, w, low, high)
            if method == "heun" and i < steps - 1:
                ahead = self.guided(z + (then - now) * v, then, y, w, low, high)
                v = (v + ahead) / 2
            z = z + (then - now) * v
        return z


def run(case):
    objective = case["objective"]
    model = Denoiser(case["sizes"], objective["noise_scale"], objective["t_eps"])
    own_table = model.net.pos_embed.detach().clone()
    model.load_state_dict(case["weights"], strict=True)
    x, t, noise, y = (case[name] for name in ("x", "t", "noise", "y"))
    with torch.no_grad():
        predicted = model.net(noise, t, y)
    loss = model.loss(x, t, noise, y)
    loss.backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
    sampling = case["sampling"]
    images = {
        method: model.sample(
            noise, y, case["w"], sampling["low"], sampling["high"], sampling["steps"], method
        )
        for method in ("euler", "heun")
    }
    return {
        "pos_embed": own_table,
        "predicted": predicted,
        "loss": loss.detach(),
        "gradients": gradients,
        "images": images,
        "model": model.state_dict(),
        "names": [name for name, _ in model.named_parameters()],
    }


def main():
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
