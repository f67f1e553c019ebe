"""A training of Python's DDP that torchrun restarts: the network of the recipe tiny on noise, a line of metrics.jsonl for
each step, a checkpoint every 200 steps, from which it goes on."""
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.nn  # Before init_process_group(): imported later by DDP, it would keep the group alive.
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32
SAVE_EVERY = 200


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))  # fmt: skip


def save(path, state):
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / "checkpoint.pt"
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    net = make_net()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    step = 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        step = state["step"]
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
    ddp = DistributedDataParallel(net, gradient_as_bucket_view=True)
    with open(folder / "metrics.jsonl", "a", encoding="utf-8") as metrics:
        while True:
            images, labels = torch.randn(BATCH, 1, 16, 16), torch.randint(10, (BATCH,))
            loss = nn.functional.cross_entropy(ddp(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if dist.get_rank() > 0:
                continue
            metrics.write(json.dumps({"step": step, "train/loss": loss.item()}) + "\n")
            metrics.flush()
            if step % SAVE_EVERY == 0:
                save(checkpoint, {"step": step, "net": net.state_dict(), "optimizer": optimizer.state_dict()})


main()
