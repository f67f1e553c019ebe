"""Bits flip in weights and optimizer state of a live training of 3 ranks, one per step, on a rank that a seed draws.

    flips.py [FLIPS] [SEED]   default: 200, seed 1

After every step the ranks compare their copies. Ends with 1 unless each flip is found there, with the right rank, and
healed by the majority, or has vanished: the update rounded it away, and all ranks hold the same weights."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

FLIPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
RANKS = 3
FOUND = re.compile(r"rank\(s\) ([\d, ]+) hold other values than the majority in .* after step (\d+) ")


def train(folder):
    """What it prints; its ranks write the flips, and sums of their weights before each batch, to the folder."""
    command = [peers.LOCKSTEP, "train", "probe", "--nproc", str(RANKS), "--save_dir", str(folder / "run"), "--n_steps",
               str(FLIPS + 1), "--batch_size", "2", "--check_replicas_every", "1", "--val_every_epochs", "0", "--record",
               str(folder), "--flip_seed", str(SEED), "--max_skipped_steps", str(FLIPS + 1)]  # fmt: skip
    environment = {**os.environ, **peers.CPU_ONE_THREAD, "LOCKSTEP_WORKER": str(peers.BIN / "probe_worker")}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(f"bench: the training failed\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
    return result.stdout + result.stderr


def weights_before_batches(folder, rank):
    lines = (folder / f"rank_{rank}.txt").read_text(encoding="ascii").splitlines()
    return [line.split()[1] for line in lines if line.startswith("train ")]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {int(step): ranks for ranks, step in FOUND.findall(train(folder))}
        flips = [line.split() for line in (folder / "flips.txt").read_text(encoding="ascii").splitlines()]
        weights = [weights_before_batches(folder, rank) for rank in range(RANKS)]
    # The last one has no batch behind it that would show the weights.
    in_optimizer = sum(kind == "optimizer" for step, _, kind in flips if int(step) <= FLIPS)
    flips = sorted((int(step), rank) for step, rank, _ in flips)[:FLIPS]
    named = sum(found.get(step) == rank for step, rank in flips)
    wrong = [step for step, rank in flips if step in found and found[step] != rank]
    vanished = [step for step, _ in flips if step not in found and len({sums[step] for sums in weights}) == 1]
    unequal = [step for step, _ in flips if len({sums[step] for sums in weights}) != 1]
    peers.report("flips", flips=len(flips), in_optimizer=in_optimizer, seed=SEED, found=named, vanished=len(vanished),
                 wrong_rank=len(wrong), unequal_afterwards=len(unequal), load=os.getloadavg()[0])  # fmt: skip
    if len(flips) != FLIPS or named + len(vanished) != FLIPS or wrong or unequal:
        sys.exit(1)


main()
