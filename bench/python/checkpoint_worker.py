"""Python's side of the checkpoint benchmark: the same tensors as checkpoint_worker.cpp."""
import json
import os
import statistics
import sys
import time

import torch

NUM_TENSORS = 200
NUM_ELEMENTS = 1310720
ROUNDS = 3


def median_seconds(prepare, action):
    seconds = []
    for _ in range(ROUNDS + 1):
        prepare()
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[1:])


def main():
    tensors = {f"t{i}": torch.rand(NUM_ELEMENTS) for i in range(NUM_TENSORS)}
    path = os.path.join(sys.argv[1], "python.pt")

    def remove():
        if os.path.exists(path):
            os.remove(path)

    def save():
        torch.save(tensors, path)
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.close(file)

    result = {
        "save_s": median_seconds(remove, save),
        "load_s": median_seconds(lambda: None, lambda: torch.load(path, weights_only=True)),
    }
    remove()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
