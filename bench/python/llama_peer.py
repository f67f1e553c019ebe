"""Encodes sentences by a LLaMA-3-8B of random bf16 weights in Python; prints its speed as JSON.

Usage: llama_peer.py [--batch 8] [--tokens 32] [--by transformers|plain] [--compile]
                     [--device cuda|cpu] [--tiny]

The model is Hugging Face's LlamaModel when transformers can be imported, else the plain PyTorch
below. Keys of the line: rate (sentences per second, the median of rates), ms (of a forward), by,
build_s, peak_bytes.
"""
import importlib.util
import time

import torch
import torch.nn.functional as F
from torch import nn

import peer_timing as timing

SIZES = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "max_position_embeddings": 8192,
}
TINY = {
    **SIZES,
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = sizes["hidden_size"]
        self.heads, self.kv_heads = sizes["num_attention_heads"], sizes["num_key_value_heads"]
        kv_width = width // self.heads * self.kv_heads
        self.q_proj = linear(width, width)
        self.k_proj = linear(width, kv_width)
        self.v_proj = linear(width, kv_width)
        self.o_proj = linear(width, width)

    def forward(self, x, rope, mask):
        q = self.q_proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k = self.k_proj(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        v = self.v_proj(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        q, k = rotate(q, *rope), rotate(k, *rope)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.o_proj(x.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, hidden = sizes["hidden_size"], sizes["intermediate_size"]
        self.gate_proj = linear(width, hidden)
        self.up_proj = linear(width, hidden)
        self.down_proj = linear(hidden, width)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, eps = sizes["hidden_size"], sizes["rms_norm_eps"]
        self.self_attn = Attention(sizes)
        self.mlp = Mlp(sizes)
        self.input_layernorm = nn.RMSNorm(width, eps)
        self.post_attention_layernorm = nn.RMSNorm(width, eps)

    def forward(self, x, rope, mask):
        x = x + self.self_attn(self.input_layernorm(x), rope, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class PlainLlama(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = sizes["hidden_size"]
        self.head_size = width // sizes["num_attention_heads"]
        self.theta = sizes["rope_theta"]
        self.embed_tokens = nn.Embedding(sizes["vocab_size"], width)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes["num_hidden_layers"]))
        self.norm = nn.RMSNorm(width, sizes["rms_norm_eps"])

    def rope(self, like):
        options = {"device": like.device, "dtype": torch.float32}
        rates = self.theta ** (-torch.arange(0, self.head_size, 2, **options) / self.head_size)
        angles = torch.arange(like.shape[1], **options)[:, None] * rates
        angles = torch.cat([angles, angles], -1)
        return angles.cos().to(like.dtype), angles.sin().to(like.dtype)

    def forward(self, ids, attention_mask):
        """The last hidden state [B,T,width]."""
        x = self.embed_tokens(ids)
        count = ids.shape[1]
        is_past = torch.ones(count, count, dtype=torch.bool, device=ids.device).tril()
        mask = is_past & attention_mask.bool()[:, None, None, :]
        rope = self.rope(x)
        for layer in self.layers:
            x = layer(x, rope, mask)
        return self.norm(x)


def build(options, sizes):
    """A function of ids and mask; its module; and what made it."""
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(options.device):
        if options.by == "plain":
            model = PlainLlama(sizes)
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.dim() == 2:
                        parameter.normal_(0, 0.02)
        else:
            from transformers import LlamaConfig, LlamaModel

            model = LlamaModel(LlamaConfig(**sizes, attn_implementation="sdpa"))
    torch.set_default_dtype(torch.float32)
    model.eval().requires_grad_(False)
    called = timing.compiled(options, model) if options.compile else model
    if options.by == "plain":
        return called, model, "plain"
    import transformers

    def encode(ids, attention_mask):
        seen = called(ids, attention_mask=attention_mask, use_cache=False)
        return seen.last_hidden_state

    return encode, model, f"transformers {transformers.__version__}"


def main():
    parser = timing.forward_parser(__doc__)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32)
    has_transformers = importlib.util.find_spec("transformers") is not None
    default = "transformers" if has_transformers else "plain"
    parser.add_argument("--by", choices=["transformers", "plain"], default=default)
    parser.add_argument("--tiny", action="store_true", help="a small model, to try this script")
    options = parser.parse_args()
    timing.prepare(options)
    sizes = TINY if options.tiny else SIZES
    begin = time.perf_counter()
    encode, model, by = build(options, sizes)
    if options.device == "cuda":
        torch.cuda.synchronize()
    build_seconds = time.perf_counter() - begin
    shape = (options.batch, options.tokens)
    ids = torch.randint(0, sizes["vocab_size"], shape, device=options.device)
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        assert encode(ids, mask).isfinite().all()
    facts = {
        "by": by,
        "build_s": build_seconds,
        "parameters": sum(p.numel() for p in model.parameters()),
        "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
    }
    timing.report_forward(options, lambda: encode(ids, mask), options.batch, facts)


if __name__ == "__main__":
    main()
