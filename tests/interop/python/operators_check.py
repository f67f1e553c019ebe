"""torch.ops.lockstep.* against the same layers written in Python.

Usage: operators_check.py LIBLOCKSTEP. On the CPU in float64 with gradients, as meta and fake tensors, and under
torch.compile; where there is a GPU also there, in bfloat16.
"""
import sys

import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode

torch.ops.load_library(sys.argv[1])
ops = torch.ops.lockstep
torch.manual_seed(1)
B, N, D, HEADS, SIZE = 2, 5, 32, 3, 32


def norm(x, weight, bias, eps, layer_norm):
    if layer_norm:
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 if weight is None else weight)


def residual_norm(x, branch, branch_bias, gate, weight, bias, shift, scale, eps, layer_norm):
    total = x + gate[:, None] * (branch + branch_bias)
    return total, norm(total, weight, bias, eps, layer_norm) * (1 + scale[:, None]) + shift[:, None]


def linear_activation(x, weight, bias, activation):
    y = F.linear(x, weight, bias)
    if activation == "swiglu":
        a, b = y.chunk(2, -1)
        return F.silu(a) * b
    return {"gelu": F.gelu, "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"), "silu": F.silu}[activation](y)


def rotate(x, rope):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * rope).flatten(-2)


def qk_rms_rope(qkv, query_weight, key_weight, rope, eps):
    q, k, v = qkv.unbind(2)
    return rotate(norm(q, query_weight, None, eps, False), rope), rotate(norm(k, key_weight, None, eps, False), rope), v


def attention(qkv):
    q, k, v = qkv.transpose(1, 3).unbind(2)
    return torch.softmax(q @ k.transpose(-1, -2) / SIZE**0.5, -1).matmul(v).transpose(1, 2)


def randn(*sizes):
    return torch.randn(*sizes, dtype=torch.float64)


def cases():
    angles = randn(N, 1, SIZE // 2)
    rope = torch.polar(torch.ones_like(angles), angles)
    for layer_norm in (False, True):
        bias = randn(D) if layer_norm else None
        yield ("residual_norm", residual_norm, (randn(B, N, D), randn(B, N, D), randn(D), randn(B, D), randn(D), bias,
                                                randn(B, D), randn(B, D), 1e-6, layer_norm))
    for activation in ("gelu", "gelu_tanh", "silu", "swiglu"):
        yield "linear_activation", linear_activation, (randn(B, N, D), randn(48, D), randn(48), activation)
    yield "qk_rms_rope", qk_rms_rope, (randn(B, N, 3, HEADS, SIZE), randn(SIZE), randn(SIZE), rope, 1e-6)
    yield "attention", attention, (randn(B, N, 3, HEADS, SIZE),)


def run(function, arguments):
    """Results, and gradients of a fixed sum of them."""
    leaves = [a.detach().clone().requires_grad_(a.is_floating_point()) if torch.is_tensor(a) else a for a in arguments]
    results = function(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    sum((r.double() * torch.arange(r.numel(), device=r.device).view(r.shape).sin()).sum() for r in results).backward()
    gradients = [a.grad for a in leaves if torch.is_tensor(a) and a.requires_grad]
    return [*results, *gradients]


def expect_close(what, ours, theirs, tolerance):
    assert len(ours) == len(theirs), what
    for i, (a, b) in enumerate(zip(ours, theirs)):
        error = (a.double().cpu() - b.double().cpu()).norm() / b.double().norm().clamp_min(1e-30)
        assert error < tolerance, f"{what}, tensor {i}: relative error {error}"


def placed(arguments, **to):
    return [a.to(**to) if torch.is_tensor(a) else a for a in arguments]


def shapes(results):
    return [(tuple(r.shape), r.dtype) for r in (results if isinstance(results, tuple) else (results,))]


def check_without_data(name, arguments, results):
    """Meta tensors, and fake ones that say that they are on a GPU: no kernel may touch them."""
    ours = getattr(ops, name)(*placed(arguments, device="meta"))
    assert shapes(ours) == results, (name, shapes(ours), results)
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(a) if torch.is_tensor(a) else a for a in arguments]
        assert shapes(getattr(ops, name)(*fakes)) == results, name


def expect_refused(what, *call):
    try:
        call[0](*call[1:])
    except RuntimeError as error:
        return str(error)
    raise AssertionError(f"{what} is taken")


def check_refusals(device):
    """Wrong shapes are errors, also where a kernel would read beyond them."""
    def make(*sizes):
        return torch.randn(*sizes, device=device)

    x, rows = make(B, N, D), make(B, D)
    rope = torch.polar(torch.ones(N, 1, SIZE // 2), torch.zeros(N, 1, SIZE // 2)).to(device)
    heads = make(B, N, 3, HEADS, SIZE)
    expect_refused("a short weight of heads", ops.qk_rms_rope, heads, make(SIZE // 2), make(SIZE), rope, 1e-6)
    expect_refused("a short bias", ops.linear_activation, x, make(48, D), make(16), "silu")
    expect_refused("a short weight", ops.residual_norm, x, None, None, None, make(D // 2), None, rows, rows)
    for shift, scale in ((rows, None), (None, rows)):
        text = expect_refused("half of a modulation", ops.residual_norm, x, None, None, None, None, None, shift, scale)
        assert "shift and scale belong together" in text, text
    text = expect_refused("an unpacked projection", ops.attention, heads[:, :, 0])
    assert "packed projection" in text, text
    text = expect_refused("an unknown activation", ops.linear_activation, x, make(48, D), None, "relu6")
    assert "gelu, gelu_tanh, silu or swiglu" in text, text


def main():
    for name, reference, arguments in cases():
        ours = getattr(ops, name)
        expect_close(name, run(ours, arguments), run(reference, arguments), 1e-12)
        check_without_data(name, arguments, shapes(ours(*arguments)))
        compiled = torch.compile(lambda *a, op=ours: op(*a), backend="aot_eager", dynamic=False)
        expect_close(f"{name} compiled", run(compiled, arguments), run(reference, arguments), 1e-12)
        if torch.cuda.is_available():
            # The residual stream and norms' weights stay in float32.
            wide = [a.float() if torch.is_tensor(a) and a.is_floating_point() else a for a in arguments]
            wide = [a.to(torch.complex64) if torch.is_tensor(a) and a.is_complex() else a for a in wide]
            expect_close(f"{name} on the GPU", run(ours, placed(wide, device="cuda")), run(reference, arguments), 1e-5)
        print("ok", name)
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        check_refusals(device)


main()
