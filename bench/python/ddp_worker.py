"""Python's side of the DDP benchmarks: the same network, batch and modes as ddp_worker.cpp."""
import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.nn  # Before init_process_group(): imported later by DDP, it would keep the group alive.
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32


def make_net():
    return nn.Sequential(
        nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1024)
    )


def wrap(net):
    return DistributedDataParallel(net, gradient_as_bucket_view=True)


def train_step(forward, optimizer, x):
    forward(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def time_ms(step):
    begin = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - begin)


def measure_wrapper(rounds):
    x = torch.randn(BATCH, 1024)
    bare, wrapped = make_net(), make_net()
    ddp = wrap(wrapped)
    bare_optimizer = torch.optim.SGD(bare.parameters(), 0.01)
    wrapped_optimizer = torch.optim.SGD(wrapped.parameters(), 0.01)
    ratios = []
    for number in range(-5, rounds):
        b = time_ms(lambda: train_step(bare, bare_optimizer, x))
        w = time_ms(lambda: train_step(ddp, wrapped_optimizer, x))
        if number >= 0:
            ratios.append(w / b)
    print(json.dumps({"ratio": round(statistics.median(ratios), 4)}))


def measure_steps(count):
    torch.manual_seed(0)
    net = make_net()
    ddp = wrap(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    x = torch.randn(BATCH, 1024)
    times = []
    for number in range(-5, count):
        t = time_ms(lambda: train_step(ddp, optimizer, x))
        if number >= 0:
            times.append(t)
    if dist.get_rank() == 0:
        print(json.dumps({"step_ms": round(statistics.median(times), 3)}))


def first_step():
    net = make_net()
    train_step(wrap(net), torch.optim.SGD(net.parameters(), 0.01), torch.randn(BATCH, 1024))
    if dist.get_rank() == 0:
        print("first step done", flush=True)


def main():
    dist.init_process_group("gloo")
    mode = sys.argv[1]
    if mode == "wrapper":
        measure_wrapper(int(sys.argv[2]))
    elif mode == "steps":
        measure_steps(int(sys.argv[2]))
    else:
        first_step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
