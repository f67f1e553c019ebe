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
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"


def median_seconds(prepare, action):
    seconds = []
    for _ in range(ROUNDS + 1):
        prepare()
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[1:])


def measure_save(path):
    tensors = {f"t{i}": torch.rand(NUM_ELEMENTS).to(DEVICE) for i in range(NUM_TENSORS)}

    def remove():
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        if os.path.exists(path):
            os.remove(path)

    def save():
        torch.save(tensors, path)
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.close(file)

    return {"save_s": median_seconds(remove, save)}


def measure_load(path):
    begin = time.perf_counter()
    tensors = torch.load(path, weights_only=True)
    seconds = time.perf_counter() - begin
    assert len(tensors) == NUM_TENSORS
    return {"load_s": seconds}


if __name__ == "__main__":
    measure = measure_save if sys.argv[1] == "save" else measure_load
    print(json.dumps(measure(os.path.join(sys.argv[2], "python.pt"))))
