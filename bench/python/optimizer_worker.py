"""Python's side of the optimizer benchmark: the same tensors as optimizer_worker.cpp."""
import json
import sys
import time

import torch

WIDTH = 440
LAYER = [
    (3 * WIDTH, WIDTH),
    (3 * WIDTH,),
    (WIDTH, WIDTH),
    (WIDTH,),
    (4 * WIDTH, WIDTH),
    (4 * WIDTH,),
    (WIDTH, 4 * WIDTH),
    (WIDTH,),
    (WIDTH,),
    (WIDTH,),
    (WIDTH,),
    (WIDTH,),
]


def make_parameters():
    torch.manual_seed(0)
    parameters = []
    for shape in [(1000, WIDTH), (256, WIDTH)] + 12 * LAYER:
        parameters.append(torch.randn(shape).requires_grad_())
        parameters[-1].grad = torch.randn(shape)
    return parameters


def main():
    optimizer = torch.optim.AdamW(make_parameters(), fused=True)
    times = []
    for step in range(-3, int(sys.argv[1])):
        begin = time.perf_counter()
        optimizer.step()
        end = time.perf_counter()
        if step >= 0:
            times.append(1e3 * (end - begin))
    print(json.dumps({"step_ms": round(min(times), 3)}))


if __name__ == "__main__":
    main()
