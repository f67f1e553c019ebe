"""Python's DistributedDataParallel on the cases of ddp_parity_worker.cpp.

Started once per rank; writes the final parameters and buffers of each case as raw bytes to
<out>/<case>.rank<r>.bin. The C++ program does the same with Lockstep; the files must be equal.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.nn  # Before init_process_group(): imported later by DDP, it would keep the group alive.
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
WIDTH = 512
BATCH = 8


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, WIDTH)
        self.b = nn.Linear(WIDTH, WIDTH)
        self.c = nn.Linear(WIDTH, WIDTH)
        self.d = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = torch.tanh(self.a(x))
        x = torch.tanh(self.b(x))
        x = torch.tanh(self.c(x))
        return self.d(x)


class Branches(nn.Module):
    """Which branch is used differs between steps and ranks."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(64, WIDTH)
        self.left = nn.Linear(WIDTH, 10)
        self.right = nn.Linear(WIDTH, 10)

    def forward(self, x, use_left):
        x = torch.tanh(self.trunk(x))
        return self.left(x) if use_left else self.right(x)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.b = nn.Linear(WIDTH, WIDTH)
        self.c = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = torch.tanh(self.norm(self.a(x)))
        return self.c(torch.tanh(self.b(x)))


def batch_of(rank, step):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(BATCH, 64, generator=generator)
    labels = torch.randint(10, (BATCH,), generator=generator)
    return inputs, labels


def train(case, rank):
    torch.manual_seed(42)
    module = {"unused": Branches, "batchnorm": Normed, "join_buffers": Normed}.get(case, Mlp)()
    if case == "frozen":
        module.b.weight.requires_grad_(False)
    ddp = DistributedDataParallel(
        module,
        bucket_cap_mb=None if case == "default_buckets" else 1,
        gradient_as_bucket_view=case in ("bucket_view", "bucket_view_kept"),
        find_unused_parameters=case in ("unused", "join_unused"),
        static_graph=case == "static_graph",
    )
    if case == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if case == "bf16":
        ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = torch.optim.SGD(
        [p for p in module.parameters() if p.requires_grad], lr=0.05, momentum=0.9
    )
    keep_storage = case == "bucket_view_kept"

    def step(number):
        inputs, labels = batch_of(rank, number)
        if case == "unused":
            output = ddp(inputs, (number + rank) % 2 == 0)
        else:
            output = ddp(inputs)
        nn.functional.cross_entropy(output, labels).backward()

    def update():
        optimizer.step()
        optimizer.zero_grad(set_to_none=not keep_storage)

    if case == "no_sync":
        for number in range(STEPS):
            if number % 4 != 3:
                with ddp.no_sync():
                    step(number)
            else:
                step(number)
                update()
    elif case.startswith("join"):
        divide = case != "join_effective"
        with ddp.join(divide_by_initial_world_size=divide):
            for number in range(STEPS - 3 * rank):
                step(number)
                update()
    else:
        for number in range(STEPS):
            step(number)
            update()
    return module


def main():
    out, cases = sys.argv[1], sys.argv[2:]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for case in cases:
        module = train(case, rank)
        with open(os.path.join(out, f"{case}.rank{rank}.bin"), "wb") as file:
            for tensor in list(module.parameters()) + list(module.buffers()):
                file.write(tensor.detach().contiguous().numpy().tobytes())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
