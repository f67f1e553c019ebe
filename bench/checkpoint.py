"""Saving and loading 1 GB in 200 tensors, against torch.save and torch.load(weights_only=True).

Both save until the data is on the disk (fsync); ours also by a temporary file that is renamed.
Both load from the page cache in a program that has just started; ours also checks every CRC, which
torch.load does not. The stall is the time that BackgroundSaver::save() holds a training, as a part of what torch.save
takes. As many threads as cores, as a training alone on the machine has them.
Targets: save_ratio >= 1, load_ratio >= 1, stall_share <= 0.05. With the word cuda what is saved
lies on a GPU: tools/gpu_run python3 bench/checkpoint.py cuda.
"""
import os
import statistics
import sys
import tempfile

import peers

OURS = str(peers.BIN / "checkpoint_worker")
PEER = [peers.peer_python(), str(peers.ROOT / "bench" / "python" / "checkpoint_worker.py")]
GIGABYTES = 200 * 1310720 * 4 / 1e9
ROUNDS = 5
DEVICE = sys.argv[1:]

peers.CPU_ONE_THREAD["OMP_NUM_THREADS"] = str(os.cpu_count())
if DEVICE:
    del peers.CPU_ONE_THREAD["CUDA_VISIBLE_DEVICES"]


def measure(folder):
    """One round of all four, by turns."""
    ours = peers.run_json([OURS, "save", folder, *DEVICE])
    theirs = peers.run_json([*PEER, "save", folder, *DEVICE])
    ours.update(peers.run_json([OURS, "load", folder]))
    theirs.update(peers.run_json([*PEER, "load", folder]))
    return ours, theirs


with tempfile.TemporaryDirectory() as folder:
    rounds = [measure(folder) for _ in range(ROUNDS)]


def median(value):
    return statistics.median(value(ours, theirs) for ours, theirs in rounds)


peers.report(
    " ".join(["checkpoint", *DEVICE]),
    save_ratio=median(lambda ours, theirs: theirs["save_s"] / ours["save_s"]),
    load_ratio=median(lambda ours, theirs: theirs["load_s"] / ours["load_s"]),
    stall_share=median(lambda ours, theirs: ours["stall_s"] / theirs["save_s"]),
    save_gb_per_s=median(lambda ours, _: GIGABYTES / ours["save_s"]),
    torch_save_gb_per_s=median(lambda _, theirs: GIGABYTES / theirs["save_s"]),
    load_gb_per_s=median(lambda ours, _: GIGABYTES / ours["load_s"]),
    torch_load_gb_per_s=median(lambda _, theirs: GIGABYTES / theirs["load_s"]),
    stall_ms=median(lambda ours, _: 1e3 * ours["stall_s"]),
)
