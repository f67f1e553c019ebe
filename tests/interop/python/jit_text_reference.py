"""JiT over pixels of text in plain PyTorch, written from the description of the guide's training.

Usage: jit_text_reference.py CASES_FILE RESULTS_FILE

The cases hold sizes, weights and draws; the results hold the forward pass, the loss, all
gradients, sampled images and the state dict after a strict load. The sequence is always whole:
the patches of the condition first, then those of the target, with an explicit softmax.
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
        size = x.pow(2).sum(-1, keepdim=True).sqrt() / math.sqrt(x.shape[-1])
        return x / size.clamp(min=1e-6) * self.weight


class AdaLN(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.scale_mlp = nn.Sequential(nn.SiLU(), nn.Linear(dim, dim))
        self.shift_mlp = nn.Sequential(nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, x, t):
        scale = (1 + self.scale_mlp(t)).clamp(0.1, 10)
        return self.norm(x) * scale[:, None] + self.shift_mlp(t)[:, None]


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, keys):
        b, n, d = x.shape
        size = d // self.heads
        q, k, v = (part.reshape(b, n, self.heads, size).transpose(1, 2) for part in self.qkv(x).split(d, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(size)
        masked = torch.where(keys[:, None, None] > 0, scores, torch.tensor(-math.inf))
        nothing = (keys.sum(-1) == 0)[:, None, None, None]
        weights = torch.where(nothing, torch.zeros(()), masked).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, d))


class SwiGLU(nn.Module):
    def forward(self, x):
        first, second = x.chunk(2, -1)
        return F.silu(first) * second


class Block(nn.Module):
    def __init__(self, dim, heads, ratio):
        super().__init__()
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 2 * ratio * dim), SwiGLU(), nn.Dropout(0), nn.Linear(ratio * dim, dim))
        self.adaLN = AdaLN(dim)

    def forward(self, x, t, keys):
        x = x + self.attn(self.adaLN(x, t), keys)
        return x + self.mlp(self.adaLN(x, t))


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        frequencies = [math.exp(-i * math.log(10000) / (half - 1)) for i in range(half)]
        self.register_buffer("emb", torch.tensor(frequencies))

    def forward(self, t):
        angles = t.float()[:, None] * self.emb
        return torch.cat([angles.sin(), angles.cos()], -1)


class JiT(nn.Module):
    def __init__(self, size, patch, dim, depth, heads, ratio):
        super().__init__()
        self.patch, self.side = patch, size // patch
        self.pos_embed_h = nn.Parameter(torch.zeros(1, self.side, dim))
        self.pos_embed_w = nn.Parameter(torch.zeros(1, self.side, dim))
        self.cond_pos_embed_h = nn.Parameter(torch.zeros(1, self.side, dim))
        self.cond_pos_embed_w = nn.Parameter(torch.zeros(1, self.side, dim))
        values = 3 * patch * patch
        self.patch_embed = nn.Linear(values, dim, bias=False)
        self.time_embed = TimeEmbedding(dim)
        self.condition_embed = nn.Linear(values, dim, bias=False)
        self.blocks = nn.ModuleList(Block(dim, heads, ratio) for _ in range(depth))
        self.output_proj = nn.Linear(dim, values)

    def tokens(self, image):
        """[B, 3, S, S] -> [B, N, 3 p p], one patch after the other."""
        p = self.patch
        return torch.stack([
            image[:, :, r * p:(r + 1) * p, c * p:(c + 1) * p].flatten(1)
            for r in range(self.side) for c in range(self.side)], 1)

    def image(self, tokens):
        p, n = self.patch, self.side
        patches = tokens.reshape(-1, n, n, 3, p, p)
        rows = [torch.cat([patches[:, r, c] for c in range(n)], -1) for r in range(n)]
        return torch.cat(rows, -2)

    def valid_patches(self, mask):
        """[B, S, S] -> [B, N]: a patch counts when any of its pixels does."""
        p = self.patch
        return torch.stack([
            (mask[:, r * p:(r + 1) * p, c * p:(c + 1) * p].flatten(1).sum(1) > 0).float()
            for r in range(self.side) for c in range(self.side)], 1)

    def forward(self, x, t, condition=None, mask=None):
        b, count = x.shape[0], self.side**2
        target = self.patch_embed(self.tokens(x))
        target = target + (self.pos_embed_h[0][:, None] + self.pos_embed_w[0][None]).reshape(1, count, -1)
        if condition is None:
            front, front_keys = torch.zeros_like(target), torch.zeros(b, count)
        else:
            front = self.condition_embed(self.tokens(condition))
            front = front + (self.cond_pos_embed_h[0][:, None] + self.cond_pos_embed_w[0][None]).reshape(1, count, -1)
            front_keys = torch.ones(b, count)
        valid = torch.ones(b, count) if mask is None else self.valid_patches(mask)
        keys = torch.cat([front_keys, valid], 1)
        sequence, time = torch.cat([front, target], 1), self.time_embed(t)
        for block in self.blocks:
            sequence = block(sequence, time, keys)
        return self.image(self.output_proj(sequence[:, count:]) * valid[..., None])


@torch.no_grad()
def sample(model, x, condition, steps):
    """DDIM, deterministic: from t = 999 to 0."""
    times = [round(999 * (1 - k / steps)) for k in range(steps + 1)]
    for t, following in zip(times, times[1:]):
        a, after = 1 - t / 1000, 1 - following / 1000
        clean = model(x, torch.full((x.shape[0],), t), condition)
        x = after * clean + (1 - after) * (x - a * clean) / (1 - a)
    return x


def run(case):
    model = JiT(**case["sizes"])
    own_frequencies = model.time_embed.emb.clone()
    model.load_state_dict(case["weights"], strict=True)
    clean, mask, t, noise = (case[name] for name in ("x", "mask", "t", "noise"))
    condition = case.get("condition")
    alpha = (1 - t.float() / 1000)[:, None, None, None]
    predicted = model(alpha * clean + (1 - alpha) * noise, t, condition, mask)
    loss = ((predicted - clean) ** 2 * mask[:, None]).sum() / mask.sum()
    loss.backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return {
        "emb": own_frequencies,
        "predicted": predicted.detach(),
        "loss": loss.detach(),
        "gradients": gradients,
        "images": sample(model, noise, condition, 4),
        "model": model.state_dict(),
        "num_trainable": sum(p.numel() for p in model.parameters()),
    }


def main():
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
