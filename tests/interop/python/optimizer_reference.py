"""Python's fused optimizers with GradScaler and clip_grad_norm_, and its AveragedModel.

Writes what optimizer_parity_test.cpp computes with Lockstep, as raw bytes to <out>/<case>.bin.
"""
import sys

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = 50
SHAPES = [(64, 33), (129,), (7, 5, 3), (1,), (2000,)]
FLOAT = [torch.float32] * 5
MIXED = [torch.float32, torch.float64, torch.bfloat16, torch.float32, torch.float64]
# Fused SGD of bfloat16 on the CPU is broken in torch 2.11.
WIDE = [torch.float32, torch.float64, torch.float32, torch.float32, torch.float64]

CASES = {
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.05}, FLOAT),
    "adam": (torch.optim.Adam, {"weight_decay": 0.05}, FLOAT),
    "sgd": (torch.optim.SGD, {"weight_decay": 0.05}, FLOAT),
    "sgd_momentum": (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.2}, FLOAT),
    "sgd_nesterov": (
        torch.optim.SGD,
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
        FLOAT,
    ),
    "adamw_mixed": (torch.optim.AdamW, {"weight_decay": 0.05}, MIXED),
    "sgd_mixed": (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.05}, WIDE),
}


def noise(number, dtypes):
    generator = torch.Generator().manual_seed(number)
    return [torch.randn(s, generator=generator).to(d) for s, d in zip(SHAPES, dtypes)]


def write(path, tensors):
    with open(path, "wb") as file:
        for tensor in tensors:
            file.write(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def set_gradients(parameters, step, values, scale):
    for i, (p, value) in enumerate(zip(parameters, values)):
        p.grad = (value + 0.1 * p.detach()) * scale
        if step in (4, 17, 18, 40) and i == 2:
            p.grad[0] = float("inf")
        if step % 7 == 3 and i == 1:
            p.grad = None


def run(kind, settings, dtypes):
    parameters = [p.requires_grad_() for p in noise(1000, dtypes)]
    optimizer = kind(
        [
            {"params": parameters[:3]},
            {"params": parameters[3:], "weight_decay": 0.0},
        ],
        lr=0.01,
        fused=True,
        **settings,
    )
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=8)
    scaler.scale(torch.tensor(1.0))
    norms = []
    for step in range(STEPS):
        lr = 0.01 * (1 + 0.1 * (step % 5))
        optimizer.param_groups[0]["lr"] = lr * 1.0
        optimizer.param_groups[1]["lr"] = lr * 0.3
        set_gradients(parameters, step, noise(step, dtypes), scaler._scale)
        scaler.unscale_(optimizer)
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, 5.0).float())
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    tensors = []
    for p in parameters:
        tensors.append(p)
        tensors += [value for _, value in sorted(optimizer.state[p].items())]
    return tensors + norms + [scaler._scale, scaler._growth_tracker]


def run_ema():
    model = torch.nn.ParameterList(noise(1000, MIXED))
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.93))
    average.update_parameters(model)  # the first one only copies
    for step in range(STEPS):
        with torch.no_grad():
            for p, value in zip(model, noise(step, MIXED)):
                p.add_(value)
        average.update_parameters(model)
    return list(average.module)


def main():
    out = sys.argv[1]
    for name, case in CASES.items():
        write(f"{out}/{name}.bin", run(*case))
    write(f"{out}/ema.bin", run_ema())


if __name__ == "__main__":
    main()
